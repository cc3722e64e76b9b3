/** Stylesheets of packages, which the bundler puts beside the page's script. */
declare module '*.css';
