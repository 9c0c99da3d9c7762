package main

import (
	"context"
	"errors"
	"io"

	"github.com/headgate/headgate/cmd/internal/ctl"
)

type ctlCommand struct {
	Admin string `help:"The admin.listen of instances, with commas between them. https:// before one is for admin.tls. dns:NAME:PORT stands for all addresses of a name." default:"127.0.0.1:9902" env:"HEADGATE_ADMIN_LISTEN" placeholder:"HOST:PORT"` //nolint:lll // A tag has one line.
	CA    string `help:"PEM file of authorities for a certificate of admin.tls. The default is those of the system." name:"ca" env:"HEADGATE_CA_FILE" placeholder:"FILE"`                                                                               //nolint:lll // A tag has one line.
	// The flag has no token itself, because other users of the machine see the command line.
	TokenFile string `help:"File with the token of a caller, if admin.auth is token." env:"HEADGATE_TOKEN_FILE" placeholder:"FILE"`

	JSON bool `help:"Print JSON for programs." name:"json"`

	Status   statusCommand   `cmd:"" help:"Print the addresses, the rules, the store and the last reload of the instance."`
	Reload   reloadCommand   `cmd:"" help:"Reload the configuration, certificates and log files, and print the faults."`
	Mode     modeCommand     `cmd:"" help:"Print or set the mode of all rules, or of some, for some time."`
	Trial    trialCommand    `cmd:"" help:"Try other limits of a rule on the requests of now, without an effect on them."`
	Shares   sharesCommand   `cmd:"" help:"Print each client's share of the capacity: demand, size, borrowed or lent, admitted, refused."`
	Throttle throttleCommand `cmd:"" help:"Print what the service has, what is queued by class, and what the throttle refused."`
	Leases   leasesCommand   `cmd:"" help:"Print the tree of capacity leases: what resources, servers and holders want and have."`
	Why      whyCommand      `cmd:"" help:"Print what the instance would do with a request now, step by step, and why."`
	Refusals refusalsCommand `cmd:"" help:"Print the last refusals: when, by what, which key and which request."`
	Top      topCommand      `cmd:"" help:"Print the keys with the most refusals in the last five to ten minutes."`
	Bans     bansCommand     `cmd:"" help:"List and lift bans."`
	Key      keyCommand      `cmd:"" help:"Read, reset and ban one key of a rule or a domain."`
	Quota    quotaCommand    `cmd:"" help:"Read and change the customers of plans, and what they have used."`
	Plan     planCommand     `cmd:"" help:"Read and change plans."`
	Rule     ruleCommand     `cmd:"" help:"Read and change rules."`
	Usage    usageCommand    `cmd:"" help:"Print what customers with an entry have used in the present windows."`
	Actions  actionsCommand  `cmd:"" help:"Print what operators have changed at run time, and the commands that undo it."`
	Audit    auditCommand    `cmd:"" help:"Print who has changed rules, plans and customers, and why."`
	Source   sourceCommand   `cmd:"" help:"Prepare a source of rules, plans and customers."`
	Limit    limitCommand    `cmd:"" help:"Read and change the limits in etcd that pacers keep to."`
}

// Validate refuses --json together with the flags of the table.
func (c *ctlCommand) Validate() error {
	if s := &c.Shares; c.JSON && (s.Top > 0 || s.Sort != "" && s.Sort != byName) {
		return errors.New("--sort and --top change the table only: leave them out with --json, which lists all clients by name")
	}
	return nil
}

// fleet is the instances that the flags name.
func (c *ctlCommand) fleet(stderr io.Writer) *ctl.Fleet {
	return &ctl.Fleet{Instance: *c.instance(), Errors: stderr}
}

// instance is a client of the instance that the flags name, if they name one.
func (c *ctlCommand) instance() *ctl.Instance {
	return &ctl.Instance{Admin: c.Admin, JSON: c.JSON, TokenFile: c.TokenFile, CA: c.CA}
}

// one is an instance for a command about what all instances share.
func (c *ctlCommand) one(ctx context.Context, stderr io.Writer) (*ctl.Instance, error) {
	return c.fleet(stderr).One(ctx)
}

type statusCommand struct{ watchFlags }

func (s statusCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	if s.Watch {
		return c.fleet(stderr).WatchStatus(ctx, s.how(stdout, stderr))
	}
	return c.fleet(stderr).Status(ctx, stdout)
}

type reloadCommand struct{}

// Run tells the instance to reload its configuration, and prints the result.
func (reloadCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).Reload(ctx, stdout)
}

type leasesCommand struct {
	Resource string `arg:"" optional:"" help:"Name of a resource, to list its holders. The default lists all resources."`
}

// Run prints capacity leases.
func (l leasesCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).Leases(ctx, stdout, l.Resource)
}

type topCommand struct {
	watchFlags

	Rule string `arg:"" optional:"" help:"Name of a rule, or fair_share. The default is all of them."`
	Top  int    `help:"How many keys to list, 1 to 1024." default:"20" placeholder:"N"`
}

// Run prints the keys with the most refusals.
func (t topCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	if t.Watch {
		return c.fleet(stderr).WatchTop(ctx, t.how(stdout, stderr), t.Rule, t.Top)
	}
	return c.fleet(stderr).Top(ctx, stdout, t.Rule, t.Top)
}

type bansCommand struct {
	List listBansCommand `cmd:"" default:"1" help:"List the bans that the instance has seen, with their ids."`
	Lift liftBansCommand `cmd:"" help:"End bans, by their ids, and reset the attempts that led to them."`
}

type listBansCommand struct{}

func (listBansCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).Bans(ctx, stdout)
}

type liftBansCommand struct {
	actionFlags

	IDs []string `arg:"" name:"id" help:"Ids, as headgate ctl bans prints them."`
}

func (l liftBansCommand) Run(ctx context.Context, c *ctlCommand, stdout io.Writer, stderr errorWriter) error {
	return c.fleet(stderr).Lift(ctx, stdout, l.IDs, l.terms())
}
