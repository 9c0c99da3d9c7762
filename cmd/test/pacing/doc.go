// Package pacing tests the promises of package pace with fleets of 96 instances. The tests
// measure the units of every second, in real and virtual time and with clock errors. They also
// measure how evenly one instance spreads its calls. TestSoak… are the long tests, and the
// tests that need an otherwise idle machine.
package pacing
