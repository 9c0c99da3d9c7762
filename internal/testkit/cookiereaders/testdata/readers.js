// Prints what the package cookie, which Express uses, reads: see readers.py.
const cookie = require("/usr/share/nodejs/cookie");
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const value = cookie.parse(Buffer.from(line.trim(), "hex").toString("latin1")).session;
  console.log(value === undefined ? "-" : "x" + Buffer.from(value).toString("hex"));
});
