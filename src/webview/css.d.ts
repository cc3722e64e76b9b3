/** Stylesheets of packages. The bundler puts them next to the page's script. */
declare module '*.css';
