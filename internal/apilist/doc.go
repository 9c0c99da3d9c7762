// Package apilist lists the exported names of the public packages, as the files of
// Go's own api folder do: one line a name, with its type. The folder api/ holds the
// lists; a test compares them with the code, so that no name changes unannounced.
package apilist

//go:generate go run ./write ../../api
