// Package models has a service that answers as the APIs of language models do, and runs the unmodified SDKs of these APIs through the
// built proxy: those of npm (testdata/sdks) and those in Go. What an SDK reports as usage must be what the proxy has counted.
package models
