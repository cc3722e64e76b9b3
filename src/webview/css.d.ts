/** Stylesheets of packages. The bundler puts them beside the page's script. */
declare module '*.css';
