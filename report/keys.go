package report

import (
	"crypto/rand"
	"fmt"

	"github.com/headgate/headgate/rule"
)

// Keys says how keys are named in logs and among the top keys.
type Keys uint8

const (
	// KeysHash names values by their keyed hashes (rule.HashedKeyNames).
	KeysHash Keys = iota
	// KeysPlain names values as they are. They may be secrets of clients.
	KeysPlain
	// KeysOff names no key.
	KeysOff
)

// keysNames holds the words of configurations, in the order of the constants.
var keysNames = [...]string{"hash", "plain", "off"}

// String gives the word that configurations use.
func (k Keys) String() string {
	if int(k) < len(keysNames) {
		return keysNames[k]
	}
	return fmt.Sprintf("keys(%d)", uint8(k))
}

// ParseKeys reads the word that configurations use.
func ParseKeys(word string) (Keys, bool) {
	for i, name := range keysNames {
		if name == word {
			return Keys(i), true
		}
	}
	return 0, false
}

// secretLength is the length of a secret that is made here: that of the hash.
const secretLength = 32

// names gives what writes keys; nil writes none. Without a secret there is a random
// one: the hashes of this Report then say nothing to another.
func (k Keys) names(secret []byte) *rule.KeyNames {
	switch {
	case k == KeysPlain:
		return rule.PlainKeyNames()
	case k == KeysOff:
		return nil
	case len(secret) == 0:
		secret = make([]byte, secretLength)
		_, _ = rand.Read(secret) // It never fails.
	}
	return rule.HashedKeyNames(secret)
}
