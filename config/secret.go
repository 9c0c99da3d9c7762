package config

import (
	"fmt"
	"log/slog"
)

// secretText is what is shown of every Secret.
const secretText = "***"

// Secret is a password. What prints, logs or encodes it shows stars; Reveal alone
// gives it.
type Secret string

// Reveal gives the password itself, for the one who is to be told it.
func (s Secret) Reveal() string { return string(s) }

// shown gives stars, and nothing for a Secret that is not there.
func (s Secret) shown() string {
	if s == "" {
		return ""
	}
	return secretText
}

// Format implements fmt.Formatter for every verb, those that show a value's parts included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.shown())) }

// MarshalText implements encoding.TextMarshaler, for JSON and YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.shown()) }
