/** Types of the parts of systeminformation that are used. The index of the package would load all parts. */
declare module 'systeminformation/lib/cpu.js' {
  export const cpu: typeof import('systeminformation').cpu;
}
declare module 'systeminformation/lib/battery.js' {
  export const battery: typeof import('systeminformation').battery;
}
declare module 'systeminformation/lib/graphics.js' {
  export const graphics: typeof import('systeminformation').graphics;
}
