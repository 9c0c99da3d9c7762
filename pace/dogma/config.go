package dogma

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Config says where the document of a provider is, and how it is followed.
type Config struct {
	// URL is where the server is, as in "https://dogma.example:36462". What stands in it
	// as a path goes before the paths of the API.
	URL string
	// Project and Repository name the repository that the document is in.
	Project, Repository string
	// Path is the document's in the repository, as in "/providers/mail.json".
	Path string
	// JSONPath picks the provider's object out of a document of several, as in
	// "$.providers.mail": a change of another is none then. It may be empty.
	JSONPath string
	// Index is which of the instances this one is, from 0, and -1 when it stands in the
	// document. Two instances of the same index have the same part of each window, and
	// exceed the limit together.
	Index int

	// Token is an application token of the server's that may read the repository.
	// TokenFile names a file that has it, which is read before each request, so that a
	// token can be replaced. Without both, the request is that of an anonymous user.
	Token     string `json:"-"`
	TokenFile string
	// Client sends the requests: one of the source's own when it is nil. Of it the
	// transport is used, and neither its Timeout, its cookies nor its way with redirects.
	Client *http.Client

	// Wait is how long the server may take to answer a watch when nothing changes: whole
	// seconds up to a day, a minute when it is 0. A proxy before the server must let a
	// request take as long.
	Wait time.Duration
	// Settle is the time within which all instances know of a change, after any of them
	// does: for as long it gives an instance no more than it had. It is 2 s when it is
	// 0, and at least 1 s, which is the pause between two watches.
	Settle time.Duration
	// HoldFor is how long the last plan may be used after the server's last answer. It is
	// for ever when it is 0, and else at least 10 s more than Wait, since a server in
	// good health answers as seldom.
	HoldFor time.Duration
}

const (
	defaultWait   = time.Minute
	maxWait       = 24 * time.Hour // The server waits for no longer.
	defaultSettle = 2 * time.Second
	holdMargin    = 10 * time.Second
)

// String says which document it is. It has no token in it.
func (c Config) String() string {
	text := fmt.Sprintf("%s/%s%s on %s", c.Project, c.Repository, c.Path, c.URL)
	if c.JSONPath != "" {
		text += " at " + c.JSONPath
	}
	return text
}

// GoString is String, so that %#v prints no token either.
func (c Config) GoString() string { return c.String() }

func (c Config) withDefaults() Config {
	if c.Wait == 0 {
		c.Wait = defaultWait
	}
	if c.Settle == 0 {
		c.Settle = defaultSettle
	}
	return c
}

func (c Config) check() error {
	switch {
	case c.Index < -1:
		return fmt.Errorf("dogma: index %d: it is from 0, or -1 when it stands in the document", c.Index)
	case c.Token != "" && c.TokenFile != "":
		return errors.New("dogma: Token and TokenFile: give one of them")
	case c.Wait < time.Second || c.Wait > maxWait || c.Wait%time.Second != 0:
		return fmt.Errorf("dogma: Wait %v: the server takes whole seconds, from 1s to %v", c.Wait, maxWait)
	case c.Settle < watchPause:
		return fmt.Errorf("dogma: Settle %v: instances pause for %v between two watches: make it longer", c.Settle, watchPause)
	case c.HoldFor != 0 && c.HoldFor < c.Wait+holdMargin:
		return fmt.Errorf("dogma: HoldFor %v: a server that answers a watch after %v would be taken for lost: "+
			"make it %v or more, or lower Wait", c.HoldFor, c.Wait, c.Wait+holdMargin)
	}
	return nil
}
