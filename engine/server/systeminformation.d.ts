/** The parts of systeminformation that are used, one by one: its index would load the other twenty as well. */
declare module 'systeminformation/lib/cpu.js' {
  export const cpu: typeof import('systeminformation').cpu;
}
declare module 'systeminformation/lib/battery.js' {
  export const battery: typeof import('systeminformation').battery;
}
declare module 'systeminformation/lib/graphics.js' {
  export const graphics: typeof import('systeminformation').graphics;
}
