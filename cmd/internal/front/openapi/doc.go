// Package openapi serves an OpenAPI document of the HTTP listener of headgate server: all paths, with their requests
// and answers. The module cmd/test/openapi compares it with the answers of a real server.
package openapi
