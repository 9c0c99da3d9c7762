// Package remote decides requests that other programs describe in messages, whatever the protocol: a
// Batch takes the Requests of a message, has a guard decide them together, and gives the Answers.
package remote
