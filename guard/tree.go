package guard

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/rule"
)

// tree is a Domain whose limits are prepared. It is immutable, except for the sent limits.
type tree struct {
	*Domain

	index  *DomainIndex
	leaves []treeLeaf // by the numbers in the index
	space  []byte     // the namespace, with which every key begins
	sent   *sentLimits
}

// treeLeaf is a Leaf with its limits prepared. An unlimited one has none.
type treeLeaf struct {
	*Leaf

	counts prepared
}

// prepareTrees prepares the limits of all domains.
func (g *Guard) prepareTrees(c *Config, claimed *claims) (map[string]*tree, error) {
	trees := make(map[string]*tree, len(c.Domains))
	for i := range c.Domains {
		d := &c.Domains[i]
		t, err := g.prepareTree(c, d, claimed)
		if err == nil && trees[d.Name] != nil {
			err = errors.New("it is listed twice: merge the lists")
		}
		if err != nil {
			return nil, fmt.Errorf("guard: domain %q: %w", d.Name, err)
		}
		trees[d.Name] = t
	}
	return trees, nil
}

func (g *Guard) prepareTree(c *Config, d *Domain, claimed *claims) (*tree, error) {
	switch {
	case g.store == nil:
		return nil, ErrNoStore
	case d.Name == "":
		return nil, errors.New("its name is empty: write the domain that requests name")
	case d.Fallback > FallbackError:
		return nil, fmt.Errorf("fallback %d is not known: use the constants", d.Fallback)
	}
	t := &tree{Domain: d, space: namespaced(c.Namespace)}
	if err := g.checkLocal(c, &Rule{Fallback: d.Fallback}); err != nil {
		return nil, err
	}
	index, leaves, err := d.Index()
	if err != nil {
		return nil, err
	}
	t.index = index
	names := leafNames(nil, d.Name, d.Descriptors)
	t.leaves = make([]treeLeaf, len(leaves))
	for i, l := range leaves {
		if t.leaves[i], err = g.prepareLeaf(c, t, l, names[i], claimed); err != nil {
			return nil, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	t.sent = g.newSentLimits(c, t)
	return t, nil
}

// leafNames appends the names of the leaves of one level and of those below, in the order of
// Domain.Index. above is the name of the level.
func leafNames(names []string, above string, level []Descriptor) []string {
	for i := range level {
		d := &level[i]
		own := above + "." + d.Key
		if d.Value != "" {
			own += "_" + d.Value
		}
		if d.Leaf != nil {
			names = append(names, own)
		}
		names = leafNames(names, own, d.Descriptors)
	}
	return names
}

func (g *Guard) prepareLeaf(c *Config, t *tree, l *Leaf, name string, claimed *claims) (treeLeaf, error) {
	leaf := treeLeaf{Leaf: l}
	err := checkLeaf(l)
	if c.DomainsMode == Off {
		own := *l
		own.Unlimited, own.Policies = true, nil
		leaf.Leaf = &own
	}
	if err != nil || leaf.Unlimited {
		return leaf, err
	}
	r := &Rule{
		Rule: rule.Rule{Name: name}, Policies: l.Policies, Mode: max(l.Mode, c.DomainsMode), Fallback: t.Fallback,
		Calendar: calendar.Default(),
	}
	leaf.counts = prepared{Rule: r, state: g.state, space: t.space, number: -1}
	limits, err := g.windows(c, r, r.Policies, claimed)
	leaf.counts.limits = limits
	g.addOperatorBans(&leaf.counts, markerOfDomain+t.Name)
	return leaf, err
}

// checkLeaf finds what a tree cannot decide.
func checkLeaf(l *Leaf) error {
	switch {
	case l.Mode > Shadow:
		return errors.New("a leaf has mode enforce or shadow: leave the limit out instead of off")
	case l.Unlimited && len(l.Policies) > 0:
		return errors.New("it is unlimited and has limits: leave out one of them")
	case !l.Unlimited && len(l.Policies) == 0:
		return errors.New("it has no limit: give it one, or make it unlimited")
	}
	for _, name := range l.Replaces {
		if name == "" || name == l.Name {
			return fmt.Errorf("replaces lists %q: list the names of other limits", name)
		}
	}
	for _, p := range l.Policies {
		if p.Algorithm == headgate.LeakyBucket {
			return errors.New("leaky_bucket makes requests wait, and a decision server answers at once: use another algorithm")
		}
	}
	return nil
}
