/**
 * Stands in for `@vscode/spdlog`, which VS Code writes its logs with, where no compiler has built that: as much of it as VS Code
 * calls. Lines go to the file at once; no file is ever rotated.
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

  /** From this number on; one beyond the last is none. */
  setLevel(level) {
    this.#level = level;
  }

  getLevel() {
    return this.#level;
  }

  /** VS Code knows one pattern only, that of `#write`. */
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
      // Its folder has been removed: the editor is ending.
    }
  }
}

const create = async (name, file) => new Logger('', name, file);

// One by one: VS Code imports it as a module, and Node finds the names of those only.
exports.version = 0;
exports.Logger = Logger;
exports.setLevel = () => {};
exports.setFlushOn = () => {};
exports.createRotatingLogger = create;
exports.createAsyncRotatingLogger = create;
