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

// newSecret returns a random secret. Its hashes differ from the hashes of other Reports.
func newSecret() []byte {
	secret := make([]byte, secretLength)
	_, _ = rand.Read(secret) // rand.Read never fails.
	return secret
}

// names returns the formatter of keys, or nil for KeysOff.
func (k Keys) names(secret []byte) *rule.KeyNames {
	switch k {
	case KeysPlain:
		return rule.PlainKeyNames()
	case KeysOff:
		return nil
	default:
		return rule.HashedKeyNames(secret)
	}
}
