// Package apilist lists the exported names of the public packages. As in the api folder of Go
// itself, each name has one line with its type. The folder [Folder] holds the lists, and a test
// compares them with the code, so that every change of the API is visible in a review.
package apilist

//go:generate go run ./write ../..
