package guard

import (
	"fmt"
	"strings"
)

// maxNamespace bounds what a namespace adds to every key.
const maxNamespace = 64

// CheckNamespace says what does not fit in a Config.Namespace, and what would.
func CheckNamespace(name string) error {
	const known = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if len(name) > maxNamespace || strings.ContainsFunc(name, func(c rune) bool {
		return !strings.ContainsRune(known, c)
	}) {
		return fmt.Errorf("namespace %.80q is invalid: use up to %d letters, digits, dots and - or _", name, maxNamespace)
	}
	return nil
}

// namespaced gives what keys of a namespace begin with: a byte 0, its length and its
// bytes. Keys without one begin with the length of the rule's name, which is never 0,
// so that no key of one namespace is a key of another.
func namespaced(name string) []byte {
	if name == "" {
		return nil
	}
	return append([]byte{0, byte(len(name))}, name...)
}
