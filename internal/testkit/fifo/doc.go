// Package fifo creates named pipes for tests of code that reads files. Start with Make.
package fifo
