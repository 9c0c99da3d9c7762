// Package openapi compares the OpenAPI document of headgate server with its answers. A built headgate server answers
// requests of every kind. Each request and answer must follow the document, and each part of the document must occur
// in one of them.
package openapi
