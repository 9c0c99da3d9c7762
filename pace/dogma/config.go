package dogma

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Config sets the document of a provider, and how to follow it.
type Config struct {
	// URL is the server's address, such as "https://dogma.example:36462". A path in URL is
	// put before the paths of the API.
	URL string
	// Project and Repository name the repository of the document.
	Project, Repository string
	// Path is the document's path in the repository, such as "/providers/mail.json".
	Path string
	// JSONPath selects the provider's object in a document of several providers, such as
	// "$.providers.mail". Changes of other objects are then ignored. JSONPath may be empty.
	JSONPath string
	// Index is the index of this instance, from 0, or -1 when the document has the index.
	// Two instances with the same index use the same part of each window, and together
	// exceed the limit.
	Index int

	// Token is an application token of the server that may read the repository.
	// TokenFile names a file with the token. The file is read before each request, so that
	// operators can replace the token. Without both, requests are anonymous.
	Token     string `json:"-"`
	TokenFile string
	// Client has the transport that sends the requests. Its Timeout, cookie jar and
	// CheckRedirect are ignored. If Client is nil, the source has its own transport.
	Client *http.Client

	// Wait is the time after which the server answers a watch without a change: whole
	// seconds up to a day, and 0 means one minute. A proxy before the server must allow
	// requests of this length.
	Wait time.Duration
	// Settle is the time within which all instances know a change, after the first one
	// knows it. Until then, a change cannot raise an instance's part. The minimum is 1 s,
	// the pause between two watches, and 0 means 2 s.
	Settle time.Duration
	// HoldFor is how long the last plan is valid after the server's last answer. 0 means
	// forever. Any other value must be at least Wait plus 10 s, because a healthy server
	// may take Wait to answer.
	HoldFor time.Duration
}

const (
	defaultWait   = time.Minute
	maxWait       = 24 * time.Hour // the server's own maximum
	defaultSettle = 2 * time.Second
	holdMargin    = 10 * time.Second
)

// String returns the name of the document, without the token.
func (c Config) String() string {
	text := fmt.Sprintf("%s/%s%s on %s", c.Project, c.Repository, c.Path, c.URL)
	if c.JSONPath != "" {
		text += " at " + c.JSONPath
	}
	return text
}

// GoString returns String, so that %#v does not print the token.
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
		return fmt.Errorf("dogma: Index %d: use the instance's index from 0, or -1 when the document has the index", c.Index)
	case c.Token != "" && c.TokenFile != "":
		return errors.New("dogma: Token and TokenFile are both set: set one")
	case c.Wait < time.Second || c.Wait > maxWait || c.Wait%time.Second != 0:
		return fmt.Errorf("dogma: Wait %v: use whole seconds from 1s to %v", c.Wait, maxWait)
	case c.Settle < watchPause:
		return fmt.Errorf("dogma: Settle %v is shorter than the pause of %v between two watches: use a longer Settle", c.Settle, watchPause)
	case c.HoldFor != 0 && c.HoldFor < c.Wait+holdMargin:
		return fmt.Errorf("dogma: HoldFor %v is too short for a server that answers a watch after %v: "+
			"use at least %v, or lower Wait", c.HoldFor, c.Wait, c.Wait+holdMargin)
	}
	return nil
}
