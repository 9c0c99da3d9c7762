package peers

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/internal/certs"
	"github.com/headgate/headgate/internal/config"
)

const (
	// resolveEvery is how often names are resolved while they are used.
	resolveEvery = 10 * time.Second
	// maxPeers bounds the addresses of all names.
	maxPeers = config.MaxAdminPeers
	// patience bounds an answer of a peer, and of the resolver.
	patience = 800 * time.Millisecond
	// maxHeader bounds the header of an answer.
	maxHeader = 16 << 10
)

// peer is an address of the list.
type peer struct {
	entry           string // of the list
	scheme, address string
	client          *http.Client
}

// directory resolves the list of peers. It is safe for concurrent use.
type directory struct {
	lookup func(ctx context.Context, name string) ([]string, error)

	mu       sync.Mutex // guards the fields below; held while names are resolved
	resolved time.Time
	list     []string // of the configuration, when it was resolved
	ca       string
	files    *certs.Client
	peers    []*peer
	problems []string // names that cannot be resolved, and addresses beyond the bound
}

// current gives the addresses of the peers, and what is wrong with the list. Names that cannot be resolved keep their addresses.
func (d *directory) current(ctx context.Context, c *config.Admin, now time.Time) ([]*peer, []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.resolved) < resolveEvery && slices.Equal(d.list, c.Peers) && d.ca == c.PeersCA {
		return d.peers, d.problems
	}
	former := d.peers
	if d.ca != c.PeersCA || d.files == nil {
		d.files, former = nil, nil
		files, err := certs.NewClient(certs.ClientConfig{CA: c.PeersCA})
		if err != nil {
			d.problems = []string{"admin.peers_ca: " + err.Error()}
			return nil, d.problems
		}
		d.files = files
	}
	d.resolved, d.list, d.ca = now, slices.Clone(c.Peers), c.PeersCA
	d.peers, d.problems = d.resolve(ctx, former)
	for _, p := range former {
		if !slices.Contains(d.peers, p) {
			p.client.CloseIdleConnections()
		}
	}
	return d.peers, d.problems
}

// resolve resolves the list. Addresses that were there before keep their connections. The caller holds mu.
func (d *directory) resolve(ctx context.Context, former []*peer) (all []*peer, problems []string) {
	for _, entry := range d.list {
		scheme, at := "http://", entry
		if s, rest, found := strings.Cut(entry, "://"); found {
			scheme, at = s+"://", rest
		}
		name, port, _ := net.SplitHostPort(at)
		addresses, err := d.addresses(ctx, name)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s cannot be resolved: %v: check admin.peers and the DNS of this machine", name, err))
			for _, p := range former {
				if p.entry == entry && !slices.Contains(all, p) {
					all = append(all, p)
				}
			}
			continue
		}
		slices.Sort(addresses)
		for _, address := range addresses {
			p := &peer{entry: entry, scheme: scheme, address: net.JoinHostPort(address, port)}
			if slices.ContainsFunc(all, func(o *peer) bool { return o.address == p.address }) {
				continue
			}
			if same := slices.IndexFunc(former, func(o *peer) bool { return o.address == p.address && o.scheme == p.scheme }); same >= 0 {
				p = former[same]
			} else {
				p.client = d.client(name)
			}
			all = append(all, p)
		}
	}
	if len(all) > maxPeers {
		problems = append(problems, fmt.Sprintf("the names of admin.peers have %d addresses, and only %d are asked", len(all), maxPeers))
		all = all[:maxPeers]
	}
	return all, problems
}

func (d *directory) addresses(ctx context.Context, name string) ([]string, error) {
	if net.ParseIP(name) != nil {
		return []string{name}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.lookup(ctx, name)
}

// client makes the client of an address. The certificate of an address has the name of the entry.
func (d *directory) client(name string) *http.Client {
	files := d.files
	inner := &http.Transport{
		MaxIdleConnsPerHost: 2, MaxConnsPerHost: 4, IdleConnTimeout: resolveEvery, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeader,
	}
	inner.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		secured := files.Config().Clone() // of changed files too
		secured.ServerName = name
		dialer := tls.Dialer{Config: secured}
		return dialer.DialContext(ctx, network, address) //nolint:wrapcheck // because causeOf looks at the error.
	}
	return &http.Client{
		Transport: inner,
		// A peer has no pages elsewhere, and a token must not follow one.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// close ends the connections that are idle.
func (d *directory) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.peers {
		p.client.CloseIdleConnections()
	}
}
