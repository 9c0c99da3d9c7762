package domain_test

import (
	"fmt"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/domain"
)

func Example() {
	limits := []string{"20/m of all searches", "500/h of each user"}
	tree, err := domain.Build([]domain.Node{
		{Key: "path", Value: "/search*", ShareThreshold: true, Leaf: 0},
		{Key: "path", Leaf: domain.NoLeaf, Nodes: []domain.Node{{Key: "user", Leaf: 1}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, entries := range []headgate.Descriptors{
		{{Name: "path", Value: "/search/shoes"}},
		{{Name: "path", Value: "/cart"}, {Name: "user", Value: "42"}},
	} {
		var m domain.Match
		if tree.Find(entries, &m) && m.Leaf() != domain.NoLeaf {
			fmt.Println(limits[m.Leaf()])
			fmt.Println("  key", domain.KeyText("shop", entries, &m))
			fmt.Println("  metric", string(domain.AppendMetric(nil, "shop", entries, &m)))
		}
	}
	// Output:
	// 20/m of all searches
	//   key shop path=all "/search*"
	//   metric shop.path_/search*
	// 500/h of each user
	//   key shop path="/cart" user="42"
	//   metric shop.path.user
}
