// Package simulate is headgate simulate: what limits do with made-up traffic, before any client meets them. The guard of production
// decides in virtual time, so 400 windows take a second, and equal arguments give equal output.
//
// [Compare] runs one limit with several algorithms. [Play] runs a configuration with one traffic or with a [Scenario].
package simulate
