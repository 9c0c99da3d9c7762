// Package pacing holds package pace to its promises with whole fleets: what 96
// instances give in every second, in real time and in virtual time and with clocks
// that are wrong, and how evenly one instance spreads its calls. Longer runs, and
// those that need a machine with nothing else to do, are TestSoak….
package pacing
