package config

import (
	"fmt"
	"log/slog"
)

// secretText replaces a Secret in every output.
const secretText = "***"

// Secret is a password. Printing, logging and encoding show stars in its place. Only Reveal
// returns the password.
type Secret string

// Reveal returns the password itself, for the server that it authenticates to.
func (s Secret) Reveal() string { return string(s) }

// shown returns stars, or "" for an empty Secret.
func (s Secret) shown() string {
	if s == "" {
		return ""
	}
	return secretText
}

// Format implements fmt.Formatter. It shows stars for every verb, even for %#v.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.shown())) }

// MarshalText implements encoding.TextMarshaler, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.shown()) }
