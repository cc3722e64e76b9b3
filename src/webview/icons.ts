/** The page's icons, 16 by 16, in the text's colour. */

const PATHS = {
  send: 'M8 13V3.5M3.8 7.6 8 3.4l4.2 4.2',
  stop: 'M4.5 4.5h7v7h-7z',
  copy: 'M5.5 5.5h7v8h-7zM3.5 10.5v-8h7',
  check: 'm3.5 8.5 3 3 6-7',
  insert: 'M13 3v4.5a2 2 0 0 1-2 2H3.5M6.5 6.5l-3 3 3 3',
  apply: 'M8 2.5v6M5 5.5h6M5 12.5h6',
  newFile: 'M8.5 13.5H4v-11h5l3 3V8M9 2.5v3h3M12.5 10v5M10 12.5h5',
  close: 'm4.5 4.5 7 7m0-7-7 7',
  plus: 'M8 3.5v9M3.5 8h9',
  pin: 'M5 2.5h6M6 2.5v4L4 9.5h8l-2-3v-4M8 9.5v4',
  file: 'M4 2.5h5l3 3v8H4zM9 2.5v3h3',
  folder: 'M2.5 4h4l1.5 1.5h5.5v7h-11z',
  selection: 'M3 4.5h10M3 8h6M3 11.5h8',
  again: 'M12.8 8.6A5 5 0 1 1 11.5 4.5L13 6M13 3v3h-3',
  edit: 'M3.5 12.5 4 10l6.5-6.5 2 2L6 12zM9 5l2 2',
  slash: 'M10.5 3 5.5 13',
  warning: 'M8 2.5 14 13H2zM8 6.5v3.2M8 11.4v.1',
} as const;

export type IconName = keyof typeof PATHS;

const SVG = 'http://www.w3.org/2000/svg';

export function icon(name: IconName): SVGSVGElement {
  return drawing(16, [PATHS[name]], name === 'stop');
}

/** The logo: a radix tree in the shape of a K. */
export function mark(): SVGSVGElement {
  const svg = drawing(24, ['M6 3v18', 'M6 12h3.5c4 0 3.5-6.5 7.5-6.5', 'M9.5 12c4 0 3.5 6.5 7.5 6.5'], false);
  for (const [cx, cy] of [
    [19, 5.5],
    [19, 18.5],
  ]) {
    const dot = document.createElementNS(SVG, 'circle');
    dot.setAttribute('cx', String(cx));
    dot.setAttribute('cy', String(cy));
    dot.setAttribute('r', '2');
    svg.append(dot);
  }
  return svg;
}

/** The reused share of a prompt as a ring. */
export function ring(share: number): SVGSVGElement {
  const svg = drawing(16, [], false);
  svg.classList.add('ring');
  for (const [name, length] of [
    ['track', 1],
    ['filled', share],
  ] as const) {
    const circle = document.createElementNS(SVG, 'circle');
    circle.setAttribute('class', name);
    circle.setAttribute('cx', '8');
    circle.setAttribute('cy', '8');
    circle.setAttribute('r', '5.5');
    circle.setAttribute('pathLength', '1');
    circle.setAttribute('stroke-dasharray', `${length} 1`);
    circle.setAttribute('transform', 'rotate(-90 8 8)');
    svg.append(circle);
  }
  return svg;
}

function drawing(size: number, paths: readonly string[], filled: boolean): SVGSVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', `0 0 ${size} ${size}`);
  svg.setAttribute('aria-hidden', 'true');
  for (const d of paths) {
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('d', d);
    if (filled) path.setAttribute('class', 'solid');
    svg.append(path);
  }
  return svg;
}
