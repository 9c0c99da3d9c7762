package guard

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/rule"
	"github.com/headgate/headgate/rule/domain"
)

// tree is a Domain whose limits are prepared. It is immutable, except for the sent limits.
type tree struct {
	*Domain

	index  *domain.Index
	leaves []treeLeaf // by the numbers in the index
	space  []byte     // the namespace, with which every key begins
	sent   *sentLimits
}

// treeLeaf is a node of a tree with its limit, if it has one.
type treeLeaf struct {
	*Leaf

	descriptor *Descriptor
	counts     prepared // without limits for a node that counts nothing
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
	nodes, err := g.prepareLevel(c, t, d.Descriptors, d.Name, claimed)
	if err != nil {
		return nil, err
	}
	if t.index, err = domain.Build(nodes); err != nil {
		return nil, err
	}
	t.sent = g.newSentLimits(c, t)
	return t, nil
}

// prepareLevel prepares the limits of one level, and of those below. name is that of the level above.
func (g *Guard) prepareLevel(c *Config, t *tree, level []Descriptor, name string, claimed *claims) ([]domain.Node, error) {
	nodes := make([]domain.Node, len(level))
	for i := range level {
		d := &level[i]
		own := name + "." + d.Key
		if d.Value != "" {
			own += "_" + d.Value
		}
		nodes[i] = domain.Node{
			Key: d.Key, Value: d.Value, ShareThreshold: d.ShareThreshold, Leaf: len(t.leaves),
			DetailedMetric: d.DetailedMetric, ValueToMetric: d.ValueToMetric,
		}
		l, err := g.prepareLeaf(c, t, d, own, claimed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", own, err)
		}
		t.leaves = append(t.leaves, l)
		if nodes[i].Nodes, err = g.prepareLevel(c, t, d.Descriptors, own, claimed); err != nil {
			return nil, err
		}
	}
	return nodes, nil
}

func (g *Guard) prepareLeaf(c *Config, t *tree, d *Descriptor, name string, claimed *claims) (treeLeaf, error) {
	l := treeLeaf{Leaf: d.Leaf, descriptor: d}
	if d.Leaf == nil {
		l.Leaf = new(Leaf)
		return l, nil
	}
	if err := checkLeaf(d.Leaf); err != nil || d.Leaf.Unlimited {
		return l, err
	}
	r := &Rule{
		Rule: rule.Rule{Name: name}, Policies: d.Leaf.Policies, Mode: d.Leaf.Mode, Fallback: t.Fallback,
	}
	l.counts = prepared{Rule: r, state: g.state, space: t.space, number: -1}
	limits, err := g.windows(c, r, r.Policies, claimed)
	l.counts.limits = limits
	return l, err
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
