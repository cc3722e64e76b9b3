/**
 * Whether a module of Python can come from the standard library or from one of a project's packages. The name of a package
 * need not be that of its modules, so a likeness is enough. Reads no files.
 */

/** Of all versions. */
const STANDARD = new Set(
  `__future__ __main__ abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64
  bdb binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections
  colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses
  dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl
  filecmp fileinput fnmatch formatter fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp
  gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword
  lib2to3 linecache locale logging lzma macpath mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt
  multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os ossaudiodev parser pathlib
  pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile
  pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets
  select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile
  sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symbol symtable sys sysconfig
  syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib
  trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave
  weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo`.split(/\s+/),
);
/** What a project uses without a list: tools, a package that very many others bring, and what programs bring. */
const UNLISTED = new Set(
  `setuptools pkg_resources pip wheel pytest conftest sphinx IPython typing_extensions bpy bmesh mathutils vim gdb lldb
  sublime sublime_plugin arcpy qgis maya hou nuke unreal FreeCAD idaapi machine micropython apt apt_pkg`.split(/\s+/),
);
/** By package, the modules with a name of their own, and those of packages that it always brings and that are used too. */
const MODULES: Readonly<Record<string, string>> = {
  adafruitblinka: 'board busio digitalio analogio',
  aiohttp: 'yarl multidict',
  alembic: 'sqlalchemy',
  beautifulsoup4: 'bs4 soupsieve',
  boto3: 'botocore s3transfer jmespath dateutil urllib3',
  botocore: 'jmespath dateutil urllib3',
  bs4: 'bs4',
  celery: 'kombu billiard',
  dash: 'plotly flask',
  dask: 'distributed numpy pandas',
  deltaspark: 'pyspark',
  django: 'asgiref',
  fabric: 'invoke paramiko',
  fastapi: 'starlette pydantic',
  flask: 'werkzeug jinja2 click markupsafe itsdangerous',
  gdal: 'osgeo',
  geopandas: 'numpy pandas shapely pyproj fiona',
  googleapipythonclient: 'googleapiclient',
  gymnasium: 'numpy',
  httpx: 'httpcore anyio',
  imbalancedlearn: 'imblearn sklearn numpy scipy',
  jax: 'jaxlib numpy',
  jinja2: 'markupsafe',
  jupyter: 'IPython ipywidgets notebook nbformat',
  keras: 'numpy',
  lightgbm: 'numpy scipy',
  matplotlib: 'mpl_toolkits pylab numpy PIL',
  moto: 'boto3 botocore',
  mysqlclient: 'MySQLdb',
  notebook: 'IPython ipywidgets nbformat',
  opencvcontribpython: 'numpy',
  opencvpython: 'numpy',
  pandas: 'numpy dateutil pytz',
  pillow: 'PIL',
  protobuf: 'google',
  pycairo: 'cairo',
  pydantic: 'pydantic_core annotated_types',
  pygobject: 'gi',
  pymupdf: 'fitz',
  pyobjc: 'objc AppKit Foundation Cocoa Quartz',
  pyscard: 'smartcard',
  pyside6: 'shiboken6',
  pyspark: 'py4j',
  pytest: 'pluggy',
  pywin32:
    'win32api win32com win32con win32event win32file win32gui win32pipe win32process win32security win32service pythoncom pywintypes',
  requests: 'urllib3 certifi',
  scikitimage: 'skimage numpy scipy',
  scikitlearn: 'numpy scipy joblib',
  scipy: 'numpy',
  scrapy: 'twisted parsel itemadapter itemloaders w3lib',
  seaborn: 'numpy pandas matplotlib',
  sphinx: 'docutils jinja2',
  sqlmodel: 'sqlalchemy pydantic',
  stablebaselines3: 'gymnasium torch numpy',
  statsmodels: 'numpy pandas scipy',
  streamlit: 'numpy pandas altair',
  tensorflow: 'keras numpy google',
  textual: 'rich',
  torch: 'numpy',
  torchaudio: 'torch numpy',
  torchvision: 'torch PIL numpy',
  transformers: 'huggingface_hub tokenizers numpy torch tqdm',
  twisted: 'zope',
  typer: 'click rich',
  wagtail: 'django modelcluster taggit',
  xarray: 'numpy pandas',
  xgboost: 'numpy scipy',
};
/** What the name of a package ends with that is built for another machine. */
const BUILD = /(?:cpu|gpu|macos|headless|simd)$/;
const SHORT_PREFIXES: readonly (readonly [RegExp, string])[] = [
  [/^scikit(?=[a-z])/, 'sk'],
  [/^opencv.*/, 'cv2'],
];
/** Shorter names are in too many others. */
const MIN_ALIKE = 4;

/** Whether a version of Python has a module of this name. */
export const isStandard = (module: string): boolean => STANDARD.has(module);

/**
 * Whether a module may exist.
 * @param module its first name
 * @param packages as the project lists them, and the folders and files that it has
 */
export function isKnownModule(module: string, packages: readonly string[]): boolean {
  if (STANDARD.has(module) || UNLISTED.has(module) || module.startsWith('_')) return true;
  const wanted = plain(module);
  return packages.some((name) => {
    const known = plain(name);
    if (known.includes(wanted) || (known.length >= MIN_ALIKE && wanted.includes(known))) return true;
    if (SHORT_PREFIXES.some(([pattern, short]) => known.replace(pattern, short) === wanted)) return true;
    const own = known.replace(BUILD, '');
    return Object.hasOwn(MODULES, own) && (MODULES[own] as string).split(' ').includes(module);
  });
}

/** The first names of the modules that a line imports. None for a line inside a block, which may be tried. */
export function modulesIn(line: string): string[] {
  const from = /^from\s+(\w+)[\w.]*\s+import\b/.exec(line)?.[1];
  if (from !== undefined) return [from];
  const list = /^import\s+(\w[\w.]*(?:\s+as\s+\w+)?(?:\s*,\s*\w[\w.]*(?:\s+as\s+\w+)?)*)\s*(?:#.*|;.*)?$/.exec(
    line,
  )?.[1];
  return (list?.split(',') ?? []).map((part) => /\w+/.exec(part)?.[0] ?? '');
}

/** Without what packages spell in several ways. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[-_.]/g, '');
