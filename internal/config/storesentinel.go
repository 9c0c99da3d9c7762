package config

import (
	"fmt"

	"github.com/headgate/headgate/internal/config/field"
)

const (
	sentinelUserName         = "store_sentinel_user"
	sentinelPasswordName     = "store_sentinel_password"
	sentinelPasswordFileName = "store_sentinel_password_file"
)

// sentinels reads the credentials for the sentinels themselves.
func (s *section) sentinels(into *SharedStore) {
	s.declare(sentinelUserName, field.Restart, "User of the sentinels themselves. Default: their default user.")
	s.outline.field(sentinelUserName).text("", "", 1, maxCredential)
	v, ok := s.textOf(sentinelUserName, &into.SentinelUser)
	s.credential(v, ok, into.SentinelUser)
	s.keep(sentinelUserName, into.SentinelUser)
	s.declare(sentinelPasswordName, field.Restart, "Password of the sentinels themselves. A file keeps it out of the configuration.")
	s.outline.field(sentinelPasswordName).text("", "", 1, maxCredential)
	v, ok = s.textOf(sentinelPasswordName, (*string)(&into.SentinelPassword))
	if ok {
		s.hide(v)
	}
	s.credential(v, ok, string(into.SentinelPassword))
	s.file(s.declare(sentinelPasswordFileName, field.Restart, "File with the password of the sentinels themselves."),
		&into.SentinelPasswordFile)
}

// credential checks the length of a user or a password.
func (s *section) credential(v value, ok bool, text string) {
	switch {
	case !ok:
	case text == "":
		s.fault(v, "is empty", "write it, or remove the field")
	case len(text) > maxCredential:
		s.fault(v, fmt.Sprintf("has more than %d bytes", maxCredential), "use a shorter one")
	}
}

// checkSentinels finds credentials for sentinels that conflict.
func (s *section) checkSentinels(into *SharedStore) {
	if v, ok := s.given(sentinelPasswordFileName); ok && into.SentinelPassword != "" {
		s.fault(v, "has no effect with "+sentinelPasswordName, "remove one of them")
	}
	if v, ok := s.given(sentinelUserName); ok && into.SentinelPassword == "" && into.SentinelPasswordFile == "" {
		s.fault(v, "has no password", "set "+sentinelPasswordFileName+" or "+sentinelPasswordName+
			"; for a user with nopass, write any password")
	}
}
