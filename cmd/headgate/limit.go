package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"github.com/headgate/headgate/internal/ctl"
)

// limitCommand reads and changes the limits that pacers follow, in etcd.
type limitCommand struct {
	etcdFlags

	Get    getLimitCommand    `cmd:"" help:"Print the limits of all providers, or of one with those who share it."`
	Set    setLimitCommand    `cmd:"" help:"Set the limit of a provider, unless somebody else has changed it meanwhile."`
	Watch  watchLimitCommand  `cmd:"" help:"Print a line now and at each change of a provider's limit, until Ctrl-C."`
	Delete deleteLimitCommand `cmd:"" help:"Delete the limit of a provider."`
}

// etcdFlags are ctl.EtcdFlags with what a command line needs to know of them.
type etcdFlags struct {
	Etcd []string `help:"etcd's client addresses, by commas; https:// before them is TLS." default:"127.0.0.1:2379" env:"HEADGATE_ETCD"`

	EtcdCA   string `help:"File with the authorities of etcd's certificate." name:"etcd-ca" env:"HEADGATE_ETCD_CA" placeholder:"FILE"`
	EtcdCert string `help:"File with a certificate to show to etcd." env:"HEADGATE_ETCD_CERT" placeholder:"FILE"`
	EtcdKey  string `help:"File with the certificate's key." env:"HEADGATE_ETCD_KEY" placeholder:"FILE"`

	EtcdUser         string `help:"Who asks, where etcd has users." env:"HEADGATE_ETCD_USER" placeholder:"NAME"`
	EtcdPasswordFile string `help:"File with the user's password." env:"HEADGATE_ETCD_PASSWORD_FILE" placeholder:"FILE"`

	Prefix  string        `help:"Where the limits are in etcd." default:"/headgate/pace/" env:"HEADGATE_ETCD_PREFIX"`
	Timeout time.Duration `help:"How long etcd may take for an answer." default:"5s"`
}

// BeforeReset takes the address of an instance out of the help, and refuses it: it would be
// of no use here, and who gives it expects something else.
func (*limitCommand) BeforeReset(parsed *kong.Context) error {
	for _, element := range parsed.Path {
		if element.Flag != nil && element.Flag.Name == "admin" {
			return errors.New("--admin is the address of an instance, and limits are in etcd: leave it out, and name etcd with --etcd")
		}
	}
	for _, flag := range parsed.Flags() {
		flag.Hidden = flag.Hidden || flag.Name == "admin"
	}
	return nil
}

// Validate refuses addresses and files that do not go together.
func (l *limitCommand) Validate() error {
	flags := ctl.EtcdFlags(l.etcdFlags)
	return flags.Validate()
}

// limits are those in the etcd that the flags name.
func (c *ctlCommand) limits(stdout io.Writer, stderr errorWriter) *ctl.Limits {
	return &ctl.Limits{Etcd: ctl.EtcdFlags(c.Limit.etcdFlags), JSON: c.JSON, Out: stdout, Errors: stderr}
}

type getLimitCommand struct {
	Provider string `arg:"" optional:"" help:"Whose limit; all unless told otherwise."`
}

// Validate refuses a name that no provider can have.
func (g getLimitCommand) Validate() error {
	if g.Provider == "" {
		return nil
	}
	return ctl.CheckProvider(g.Provider)
}

// Run prints the limits.
func (g getLimitCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.limits(stdout, stderr).Get(ctx, g.Provider)
}

type setLimitCommand struct {
	Provider   string        `arg:"" help:"Whose limit."`
	Limit      string        `arg:"" help:"Units and a window for all instances together, like 50000/s or 10/1m."`
	Balance    string        `help:"How it is divided: even, or by demand; as it was, and even when there was none." placeholder:"WORD"`
	IfRevision *int64        `help:"Only if the limit has this revision; 0 only if there is none." placeholder:"N"`
	AllowZero  bool          `help:"Let a limit of 0 stop all calls to the provider."`
	Wait       time.Duration `help:"How long to wait until it is in force; 0s does not wait." default:"30s"`
}

// Validate refuses what makes no limit.
func (c setLimitCommand) Validate() error {
	set := ctl.SetLimit(c)
	return set.Validate()
}

// Run sets the limit and waits until it is in force.
func (c setLimitCommand) Run(ctx context.Context, to *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	set := ctl.SetLimit(c)
	return to.limits(stdout, stderr).Set(ctx, &set)
}

type watchLimitCommand struct {
	Provider string `arg:"" help:"Whose limit."`
}

// Validate refuses a name that no provider can have.
func (w watchLimitCommand) Validate() error { return ctl.CheckProvider(w.Provider) }

// Run prints changes until ctx ends.
func (w watchLimitCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.limits(stdout, stderr).Watch(ctx, w.Provider)
}

type deleteLimitCommand struct {
	Provider   string `arg:"" help:"Whose limit."`
	IfRevision *int64 `help:"Only if the limit has this revision." placeholder:"N"`
}

// Validate refuses a name that no provider can have.
func (d deleteLimitCommand) Validate() error {
	if err := ctl.CheckProvider(d.Provider); err != nil {
		return err
	}
	return ctl.CheckRevision(d.IfRevision)
}

// Run deletes the limit.
func (d deleteLimitCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.limits(stdout, stderr).Delete(ctx, d.Provider, d.IfRevision)
}
