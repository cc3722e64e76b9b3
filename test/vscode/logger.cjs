/**
 * Replaces `@vscode/spdlog`, with which VS Code writes its logs, on machines where no compiler has built it. Implements
 * the part that VS Code calls. Writes lines to the file at once and never rotates a file.
 */
const { appendFileSync, mkdirSync } = require('node:fs');
const path = require('node:path');

const LEVELS = ['trace', 'debug', 'info', 'warning', 'error', 'critical'];

class Logger {
  #file;
  #level = LEVELS.indexOf('info');
  #isPlain = false;

  constructor(_type, _name, file) {
    this.#file = file;
    mkdirSync(path.dirname(file), { recursive: true });
    appendFileSync(file, '');
  }

  /** Lines of this level and above are written. A level beyond the last one writes nothing. */
  setLevel(level) {
    this.#level = level;
  }

  getLevel() {
    return this.#level;
  }

  /** VS Code uses only one pattern, the one of `#write`. */
  setPattern() {
    this.#isPlain = false;
  }

  clearFormatters() {
    this.#isPlain = true;
  }

  flush() {}

  drop() {}

  trace = (text) => this.#write(0, text);
  debug = (text) => this.#write(1, text);
  info = (text) => this.#write(2, text);
  warn = (text) => this.#write(3, text);
  error = (text) => this.#write(4, text);
  critical = (text) => this.#write(5, text);

  #write(level, text) {
    if (level < this.#level) return;
    const now = new Date();
    const local = new Date(now.getTime() - 60_000 * now.getTimezoneOffset()).toISOString();
    try {
      appendFileSync(
        this.#file,
        this.#isPlain ? text : `${local.slice(0, 10)} ${local.slice(11, 23)} [${LEVELS[level]}] ${text}\n`,
      );
    } catch {
      // The folder has been removed because the editor is ending.
    }
  }
}

const create = async (name, file) => new Logger('', name, file);

// Separate assignments: VS Code imports this as a module, and Node finds only export names that are assigned one by
// one.
exports.version = 0;
exports.Logger = Logger;
exports.setLevel = () => {};
exports.setFlushOn = () => {};
exports.createRotatingLogger = create;
exports.createAsyncRotatingLogger = create;
