/** Names of Python's modules and types, by `dir` of Python 3.11 and the documentation of later ones. Holds data only. */

/** Lower-case names of modules of the standard library. */
export const PYTHON_MODULES: Readonly<Record<string, string>> = {
  os: `
    abc abort access add_dll_directory altsep chdir chflags chmod chown chroot close closerange confstr
    confstr_names copy_file_range cpu_count ctermid curdir defpath device_encoding devnull dup dup2 environ
    environb error eventfd eventfd_read eventfd_write execl execle execlp execlpe execv execve execvp execvpe
    extsep fchdir fchmod fchown fdatasync fdopen fork forkpty fpathconf fsdecode fsencode fspath fstat fstatvfs
    fsync ftruncate fwalk get_blocking get_exec_path get_handle_inheritable get_inheritable get_terminal_size
    getcwd getcwdb getegid getenv getenvb geteuid getgid getgrouplist getgroups getloadavg getlogin
    getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getsid getuid getxattr grantpt
    initgroups isatty kill killpg lchflags lchmod lchown linesep link listdir listdrives listmounts listvolumes
    listxattr lockf login_tty lseek lstat major makedev makedirs memfd_create minor mkdir mkfifo mknod name nice
    open openpty pardir path pathconf pathconf_names pathsep pidfd_open pipe pipe2 plock popen posix_fadvise
    posix_fallocate posix_openpt posix_spawn posix_spawnp pread preadv process_cpu_count ptsname putenv pwrite
    pwritev read readinto readlink readv register_at_fork reload_environ remove removedirs removexattr rename
    renames replace rmdir scandir sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getparam
    sched_getscheduler sched_param sched_rr_get_interval sched_setaffinity sched_setparam sched_setscheduler
    sched_yield sendfile sep set_blocking set_handle_inheritable set_inheritable setegid seteuid setgid
    setgroups setns setpgid setpgrp setpriority setregid setresgid setresuid setreuid setsid setuid setxattr
    spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe splice st startfile stat stat_result statvfs
    statvfs_result strerror supports_bytes_environ supports_dir_fd supports_effective_ids supports_fd
    supports_follow_symlinks symlink sync sys sysconf sysconf_names system tcgetpgrp tcsetpgrp terminal_size
    timerfd_create timerfd_gettime timerfd_settime times times_result truncate ttyname umask uname uname_result
    unlink unlockpt unsetenv unshare urandom utime wait wait3 wait4 waitid waitid_result waitpid
    waitstatus_to_exitcode walk write writev`,
  'os.path': `
    abspath altsep basename commonpath commonprefix curdir defpath devnull dirname exists expanduser expandvars
    extsep genericpath getatime getctime getmtime getsize isabs isdevdrive isdir isfile isjunction islink
    ismount join lexists normcase normpath os pardir pathsep realpath relpath samefile sameopenfile samestat sep
    split splitdrive splitext splitroot stat supports_unicode_filenames sys`,
  sys: `
    abiflags activate_stack_trampoline addaudithook api_version argv audit base_exec_prefix base_prefix
    breakpointhook builtin_module_names byteorder call_tracing copyright displayhook dllhandle
    dont_write_bytecode exc_info excepthook exception exec_prefix executable exit flags float_info
    float_repr_style get_asyncgen_hooks get_coroutine_origin_tracking_depth get_int_max_str_digits
    getallocatedblocks getandroidapilevel getdefaultencoding getdlopenflags getfilesystemencodeerrors
    getfilesystemencoding getprofile getrecursionlimit getrefcount getsizeof getswitchinterval gettotalrefcount
    gettrace getunicodeinternedsize getwindowsversion hash_info hexversion implementation int_info intern
    is_finalizing is_remote_debug_enabled is_stack_trampoline_active last_exc last_traceback last_type
    last_value maxsize maxunicode meta_path modules monitoring orig_argv path path_hooks path_importer_cache
    platform platlibdir prefix ps1 ps2 pycache_prefix remote_exec set_asyncgen_hooks
    set_coroutine_origin_tracking_depth set_int_max_str_digits setcheckinterval setdlopenflags setprofile
    setrecursionlimit setswitchinterval settrace stderr stdin stdlib_module_names stdout thread_info
    tracebacklimit unraisablehook version version_info warnoptions winver`,
  re: `
    compile copyreg enum error escape findall finditer fullmatch functools match purge search split sre_compile
    sre_constants sre_parse sub subn template`,
  json: `
    codecs decoder detect_encoding dump dumps encoder load loads scanner tool`,
  math: `
    acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2
    expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm
    ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt
    sumprod tan tanh tau trunc ulp`,
  time: `
    altzone asctime clock_getres clock_gettime clock_gettime_ns clock_settime clock_settime_ns ctime daylight
    get_clock_info gmtime localtime mktime monotonic monotonic_ns perf_counter perf_counter_ns process_time
    process_time_ns pthread_getcpuclockid sleep strftime strptime struct_time thread_time thread_time_ns time
    time_ns timezone tzname tzset`,
  random: `
    betavariate binomialvariate choice choices expovariate gammavariate gauss getrandbits getstate
    lognormvariate normalvariate paretovariate randbytes randint random randrange sample seed setstate shuffle
    triangular uniform vonmisesvariate weibullvariate`,
  itertools: `
    accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
    filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest`,
  functools: `
    cache cached_property cmp_to_key get_cache_token lru_cache namedtuple partial partialmethod recursive_repr
    reduce singledispatch singledispatchmethod total_ordering update_wrapper wraps`,
  collections: `
    abc defaultdict deque namedtuple`,
  datetime: `
    date datetime datetime_CAPI sys time timedelta timezone tzinfo`,
  logging: `
    addLevelName atexit basicConfig captureWarnings collections config critical currentframe debug disable error
    exception fatal getHandlerByName getHandlerNames getLevelName getLevelNamesMapping getLogRecordFactory
    getLogger getLoggerClass handlers info io lastResort log logMultiprocessing logProcesses logThreads
    makeLogRecord os raiseExceptions re root setLogRecordFactory setLoggerClass shutdown sys threading time
    traceback warn warning warnings weakref`,
  pathlib: `
    attrgetter fnmatch functools io ntpath os posixpath re sys urlquote_from_bytes warnings`,
  subprocess: `
    builtins call check_call check_output contextlib errno fcntl getoutput getstatusoutput io list2cmdline
    locale os run select selectors signal sys threading time types warnings`,
  shutil: `
    chown collections copy copy2 copyfile copyfileobj copymode copystat copytree disk_usage errno fnmatch
    get_archive_formats get_terminal_size get_unpack_formats ignore_patterns make_archive move nt os posix
    register_archive_format register_unpack_format rmtree stat sys unpack_archive unregister_archive_format
    unregister_unpack_format which`,
  string: `
    ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation
    templatelib whitespace`,
  copy: `
    copy deepcopy dispatch_table error replace`,
  operator: `
    abs add and_ attrgetter call concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat
    ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_none is_not is_not_none
    isub itemgetter itruediv ixor le length_hint lshift lt matmul methodcaller mod mul ne neg not_ or_ pos pow
    rshift setitem sub truediv truth xor`,
  threading: `
    activeCount active_count currentThread current_thread enumerate excepthook functools get_ident get_native_id
    getprofile gettrace local main_thread setprofile setprofile_all_threads settrace settrace_all_threads
    stack_size`,
  inspect: `
    abc ast attrgetter builtins classify_class_attrs cleandoc collections currentframe dis enum findsource
    formatannotation formatannotationrelativeto formatargvalues functools get_annotations getabsfile getargs
    getargspec getargvalues getasyncgenlocals getasyncgenstate getattr_static getblock getcallargs getclasstree
    getclosurevars getcomments getcoroutinelocals getcoroutinestate getdoc getfile getframeinfo getfullargspec
    getgeneratorlocals getgeneratorstate getinnerframes getlineno getmembers getmembers_static getmodule
    getmodulename getmro getouterframes getsource getsourcefile getsourcelines importlib indentsize isabstract
    isasyncgen isasyncgenfunction isawaitable isbuiltin isclass iscode iscoroutine iscoroutinefunction
    isdatadescriptor isframe isfunction isgenerator isgeneratorfunction isgetsetdescriptor iskeyword
    ismemberdescriptor ismethod ismethoddescriptor ismethodwrapper ismodule ispackage isroutine istraceback
    itertools linecache markcoroutinefunction modulesbyfile namedtuple os re signature stack sys token tokenize
    trace types unwrap walktree`,
};

/** Methods of types, without names that begin with an underscore. */
export const PYTHON_TYPES: Readonly<Record<string, string>> = {
  list: 'append clear copy count extend index insert pop remove reverse sort',
  dict: 'clear copy fromkeys get items keys pop popitem setdefault update values',
  set: `
    add clear copy difference difference_update discard intersection intersection_update isdisjoint issubset
    issuperset pop remove symmetric_difference symmetric_difference_update union update`,
  str: `
    capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii
    isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip
    maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split
    splitlines startswith strip swapcase title translate upper zfill`,
};

/** Attributes of built-in types. */
export const PYTHON_ATTRIBUTES = `
  add add_note append args as_integer_ratio bit_count bit_length c_contiguous capitalize casefold cast center
  characters_written clear code conjugate contiguous copy count create_module decode deleter denominator derive
  difference difference_update discard encode encoding end end_lineno end_offset endswith errno exceptions
  exec_module expandtabs extend f_contiguous fdel fget filename filename2 find find_module find_spec format
  format_map from_bytes fromhex fromkeys fset get get_code get_source getter hex imag index indices insert
  intersection intersection_update is_integer is_package isalnum isalpha isascii isdecimal isdigit isdisjoint
  isidentifier islower isnumeric isprintable isspace issubset issuperset istitle isupper items itemsize join keys
  lineno ljust load_module lower lstrip maketrans message module_repr mro msg name nbytes ndim numerator obj
  object offset partition path pop popitem print_file_and_line readonly real reason release remove removeprefix
  removesuffix replace reverse rfind rindex rjust rpartition rsplit rstrip setdefault setter shape sort split
  splitlines start startswith step stop strerror strides strip subgroup suboffsets swapcase symmetric_difference
  symmetric_difference_update text title to_bytes tobytes tolist toreadonly translate union update upper value
  values with_traceback zfill`;
