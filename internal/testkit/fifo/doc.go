// Package fifo makes named pipes for tests of what reads files. Begin with Make.
package fifo
