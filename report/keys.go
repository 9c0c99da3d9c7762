package report

import (
	"crypto/rand"
	"fmt"

	"github.com/headgate/headgate/rule"
)

// Keys is the form of keys in logs and in TopKeys.
type Keys uint8

const (
	// KeysHash shows keyed hashes of values (rule.HashedKeyNames).
	KeysHash Keys = iota
	// KeysPlain shows values as plain text. The values may be secrets of clients.
	KeysPlain
	// KeysOff shows no keys.
	KeysOff
)

// keysNames has the names in the configuration, in the order of the constants.
var keysNames = [...]string{"hash", "plain", "off"}

// String returns the name in the configuration.
func (k Keys) String() string {
	if int(k) < len(keysNames) {
		return keysNames[k]
	}
	return fmt.Sprintf("keys(%d)", uint8(k))
}

// ParseKeys parses a name of the configuration.
func ParseKeys(word string) (Keys, bool) {
	for i, name := range keysNames {
		if name == word {
			return Keys(i), true
		}
	}
	return 0, false
}

// secretLength is the length of a random secret, equal to the length of the hash.
const secretLength = 32

// names returns the formatter of keys, or nil for KeysOff. An empty secret is replaced
// by a random one: the hashes then differ from the hashes of other Reports.
func (k Keys) names(secret []byte) *rule.KeyNames {
	switch {
	case k == KeysPlain:
		return rule.PlainKeyNames()
	case k == KeysOff:
		return nil
	case len(secret) == 0:
		secret = make([]byte, secretLength)
		_, _ = rand.Read(secret) // rand.Read never fails.
	}
	return rule.HashedKeyNames(secret)
}
