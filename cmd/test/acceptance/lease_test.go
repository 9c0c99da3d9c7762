package acceptance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	leasev1 "github.com/headgate/headgate/internal/proto/headgate/lease/v1"
)

const (
	// leaseRoot has 500 units a second, and callers whose tokens are their names. Its leases are short, so that a start needs 3.2 s.
	leaseRoot = `version: 1
server:
  grpc: {address: %q, auth: token}
  http: off
  callers:
    - {name: leaf, tokens: [%q], scopes: [lease]}
    - {name: web, tokens: [%q], scopes: [lease]}
    - {name: other, tokens: [%q], scopes: [decide]}
lease:
  length: 3200ms
  refresh: 100ms
  resources: [{match: "db/*", capacity: 500/s}]
  holders: {leaf: {server: true}}
`
	leaseLeaf = `version: 1
server: {grpc: %q, http: off}
lease: {servers: [%q], token_file: %q, length: 3100ms, refresh: 100ms}
`
	leaseCapacity = 500_000
)

// freeAddress gives an address on which nothing listens. Its port is below those of outgoing connections: no connection takes the port
// of a server that is down, and a client that dials such a server does not reach itself.
func freeAddress(t *testing.T) string {
	t.Helper()
	const lowest, end, attempts = 10_000, 32_768, 1000
	for range attempts {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(end-lowest)))
		if socket, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", at); err == nil {
			_ = socket.Close()
			return at
		}
	}
	t.Fatalf("no free port on 127.0.0.1 below %d", end)
	return ""
}

// TestFreeAddress: no free address has the port of an outgoing connection of Linux.
func TestFreeAddress(t *testing.T) {
	const first, rounds = 32_768, 100
	for range rounds {
		if at := netip.MustParseAddrPort(freeAddress(t)); at.Port() >= first {
			t.Fatalf("the port of %v may belong to a connection", at)
		}
	}
}

// tokenDigest is what server.callers has of a token.
func tokenDigest(token string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(token))) }

// leaseTree has the files of a root and a leaf.
type leaseTree struct{ root, leaf, rootAt, leafAt string }

func newLeaseTree(t *testing.T) *leaseTree {
	t.Helper()
	tree := &leaseTree{rootAt: freeAddress(t), leafAt: freeAddress(t)}
	tree.root = file(t, fmt.Sprintf(leaseRoot, tree.rootAt, tokenDigest("leaf"), tokenDigest("web"), tokenDigest("other"))+adminAnywhere)
	tree.leaf = file(t, fmt.Sprintf(leaseLeaf, tree.leafAt, tree.rootAt, file(t, "leaf"))+adminAnywhere)
	return tree
}

// leaseHolder is a raw gRPC holder of one resource.
type leaseHolder struct {
	conn    *grpc.ClientConn
	name    string
	token   string
	seq     uint64
	version *leasev1.Version
	amount  int64
	end     time.Time
}

func holderAt(t *testing.T, at, name, token string) *leaseHolder {
	t.Helper()
	return &leaseHolder{conn: dialServer(t, at), name: name + strings.Repeat(".", 22), token: token}
}

// report claims an amount of a resource.
func (h *leaseHolder) report(t *testing.T, resource string, wants int64) (*leasev1.ReportResponse, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if h.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+h.token)
	}
	h.seq++
	claim := &leasev1.Claim{Resource: resource, Wants: wants, Version: h.version, Holds: h.amount, LeftUs: max(time.Until(h.end).Microseconds(), 0)}
	sent, out := time.Now(), new(leasev1.ReportResponse)
	err := h.conn.Invoke(ctx, "/headgate.lease.v1.Leases/Report", &leasev1.ReportRequest{Holder: h.name, Seq: h.seq, Claims: []*leasev1.Claim{claim}}, out)
	for _, l := range out.GetLeases() {
		h.version, h.amount, h.end = l.GetVersion(), l.GetAmount(), sent.Add(time.Duration(l.GetLengthUs())*time.Microsecond)
	}
	return out, err
}

// holds gives what the holder may use now.
func (h *leaseHolder) holds() int64 {
	if time.Now().After(h.end) {
		return 0
	}
	return h.amount
}

// refreshAll lets all holders report, and checks the sum of what they hold.
func refreshAll(t *testing.T, want map[*leaseHolder]int64) (sum int64) {
	t.Helper()
	for h, wants := range want {
		_, _ = h.report(t, "db/orders", wants) // A server may be restarting.
		sum = 0
		for other := range want {
			sum += other.holds()
		}
		if sum > leaseCapacity {
			t.Fatalf("the holders have %d of %d", sum, leaseCapacity)
		}
	}
	return sum
}

// TestLeases runs a root and a leaf: their holders share the capacity, and never have more. Refusals say what to do.
func TestLeases(t *testing.T) {
	t.Parallel()
	tree := newLeaseTree(t)
	launchServer(t, tree.root)
	launchServer(t, tree.leaf)
	direct, below := holderAt(t, tree.rootAt, "direct", "web"), holderAt(t, tree.leafAt, "below", "")
	if _, err := holderAt(t, tree.rootAt, "other", "other").report(t, "db/orders", 1); status.Code(err) != codes.PermissionDenied ||
		!strings.Contains(err.Error(), `caller "other" lacks the scope lease`) {
		t.Errorf("a token without the scope gets %v", err)
	}
	eventually(t, "the refusal of the root", func() bool {
		got, _ := holderAt(t, tree.leafAt, "lost", "").report(t, "queue/mail", 1)
		refused := got.GetRefusals()
		return len(refused) == 1 && refused[0].GetCode() == leasev1.Code_CODE_NOT_FOUND && strings.Contains(refused[0].GetText(), `add {match: "queue/*"`)
	})
	all := map[*leaseHolder]int64{direct: 100_000, below: 900_000}
	eventually(t, "the division of the capacity", func() bool {
		refreshAll(t, all)
		return direct.holds() == 100_000 && below.holds() > 395_000
	})
}
