package config

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/headgate/headgate/internal/config/check"
	"github.com/headgate/headgate/internal/errortype"
)

// SettingError says which setting of a configuration an error is about. Its text is that of Err.
type SettingError struct {
	// Path names the setting, like "proxy.tls" or "rules[2].in_flight".
	Path string
	Err  error
}

// Error returns the text of Err.
func (e *SettingError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *SettingError) Unwrap() error { return e.Err }

// Located converts the FileErrors and SettingErrors in err to Faults at the fields that they name. It returns
// any other err unchanged, and also an err that joins another error.
func (c *Config) Located(err error) error {
	var located Faults
	for _, one := range leaves(err) {
		at, found := c.faultOf(one)
		if !found {
			return err
		}
		located = append(located, at...)
	}
	if len(located) == 0 {
		return err
	}
	located.sort()
	return located
}

// leaves returns the errors that are joined in err, at any depth.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	_, joined := err.(interface{ Unwrap() []error })
	if _, whole := err.(Faults); whole || !joined { //nolint:errorlint // Wrapped faults have another text.
		return []error{err}
	}
	var flat []error
	for _, one := range check.Unjoin(err) {
		flat = append(flat, leaves(one)...)
	}
	return flat
}

// faultOf returns the fault of one error, and reports false if the error names no setting.
func (c *Config) faultOf(err error) (Faults, bool) {
	if faults, found := errortype.As[Faults](err); found {
		return faults, true
	}
	var f Fault
	if bad, found := errortype.As[*FileError](err); found {
		f = c.placeOf(bad.Path)
		f.Problem = visible([]rune(bad.Err.Error()))
	} else if bad, found := errortype.As[*SettingError](err); found {
		f = c.placeOf(bad.Path)
		f.Problem = visible([]rune(bad.Error()))
	} else {
		return nil, false
	}
	if errors.Is(err, fs.ErrNotExist) {
		f.Fix = "a relative path starts at the folder of the configuration"
	}
	return Faults{f}, f.File != ""
}

// placeOf returns a fault without a text at a setting. Its File is "" if c was not read from a text.
func (c *Config) placeOf(path string) Fault {
	if at := slices.IndexFunc(c.places, func(f Fault) bool { return f.Path == path }); at >= 0 {
		return c.places[at]
	}
	if c.written == nil {
		return Fault{}
	}
	if variable := variableOf(path); c.written.environment != nil {
		if text, set := c.written.environment(variable); set && text != "" {
			return Fault{File: variable, Path: path}
		}
	}
	root, bad := c.written.source.tree()
	if bad != nil {
		return Fault{}
	}
	r := &reader{source: c.written.source, root: root}
	f := r.source.fault(r.place(r.find(path).node, 0), path, "", "")
	f.Excerpt = "" // The line may have a secret.
	return f
}
