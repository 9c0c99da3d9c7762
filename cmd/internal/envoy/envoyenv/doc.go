// Package envoyenv reads the environment variables of envoyproxy/ratelimit into one value, so
// that a deployment of that service can run Headgate without a change. Start with Read.
//
// Each variable is declared once, in the files variables*.go: name, default, kind, meaning, and
// whether it has an effect here. Values are parsed as that service parses them: booleans by
// strconv.ParseBool, durations by time.ParseDuration, whole numbers in Go's notation, lists as
// a,b and maps as k:v,k:v. An empty value is not the default: it is an empty text, list or map,
// and a fault for the other kinds.
package envoyenv
