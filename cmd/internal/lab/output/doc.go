// Package output writes the results of headgate simulate and headgate replay: tables for people, a JSON document with its schema, and
// one HTML page with pictures. It also shows the progress of a long run.
//
// Names in results come from clients and logs. Tables and pages escape them: a terminal gets no control character, and a page no
// markup. A page has no script and refers to nothing outside. Equal results give equal bytes.
//
// Pages and pictures are written without a template, because a program with text/template keeps the methods of all its types, and
// without gonum/plot, whose fonts alone take 4 MB: see docs/decisions/0044-size-of-the-binary.md.
package output
