/** Types of the parts of systeminformation in use. They are imported one by one, because its index loads all others. */
declare module 'systeminformation/lib/cpu.js' {
  export const cpu: typeof import('systeminformation').cpu;
}
declare module 'systeminformation/lib/battery.js' {
  export const battery: typeof import('systeminformation').battery;
}
declare module 'systeminformation/lib/graphics.js' {
  export const graphics: typeof import('systeminformation').graphics;
}
