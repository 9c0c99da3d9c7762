// Package accesslogs starts the real servers whose access logs headgate replay reads, sends them requests whose times it knows, and
// compares the arrivals that cmd/internal/lab/logs reads with these times.
//
// The servers run in temporary folders, on free ports of the loopback interface, with the settings of logs.HowToLog. An arrival must be no
// earlier than 10 ms before the client sent the first byte of the moment that the preset names, and no later than a slack after the client
// sent the last one. make soak has a slack of 10 ms; other runs have 250 ms, because they share the machine. Late arrivals are judged by
// the best of three rounds: a preset that is wrong is late in each of them.
package accesslogs
