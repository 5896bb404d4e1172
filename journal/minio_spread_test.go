package journal

import (
	"fmt"
	"strings"
	"testing"
)

// spread makes replicas of what is on each node, as in "a2 b3".
func spread(text string) (pods []MinioPod) {
	for _, node := range strings.Fields(text) {
		for range int(node[1] - '0') {
			pods = append(pods, MinioPod{Name: fmt.Sprintf("ha-minio-%d", len(pods)), Node: strings.Trim(node[:1], "-"), State: MinioPodRuns})
		}
	}
	return pods
}

func TestReplicasAreSpreadEvenlyOverTheReadyNodes(t *testing.T) {
	for _, test := range []struct {
		pods  string
		ready int
		// from is the node from which one is moved, with how many it has; empty for none.
		from string
	}{
		{"", 3, ""},
		{"a6", 0, ""}, // with no ready node nothing
		{"a6", 1, ""},
		{"a6", 3, "a6"},        // more than most
		{"a4 b2", 3, "a4"},     // more than most
		{"a3 b3", 3, "a3"},     // a third node has none
		{"a2 b2 c2", 3, ""},    //
		{"a2 b2 c2", 4, "a2"},  // a fourth node has none
		{"a2 b2 c1 d1", 4, ""}, //
		{"a1 b1 c1 d1 e1 f1", 6, ""},
		{"a1 b1 c1 d1 e1 f1", 9, ""}, // nobody has more than one
		{"a2 b1 c1 d1 e1", 6, "a2"},  // a sixth node has none
		{"a2 b1 c1 d1 e1", 5, ""},
		{"a1 b3 c2", 3, "b3"}, // more than most
		{"a1 b2 c2", 3, ""},   // five: most 2, least 1
		{"a1 b2 c2 d2", 3, ""},
		{"a3 b3 c2 d1", 4, "a3"}, // nine on four: most 3, least 2, and d has fewer
		{"a3 b2 c2 d2", 4, ""},
		{"a2 b2 c2", 2, ""}, // one is not ready: most 3, least 3, and nobody has 3
		{"a3 b2 c1", 2, "a3"},
		{"a3 b3", 1, ""},
		{"a2 b2 -2", 3, "a2"}, // two without a node: four on three
		{"-6", 3, ""},
	} {
		t.Run(fmt.Sprintf("%s on %d", test.pods, test.ready), func(t *testing.T) {
			moves, from := MinioMoves(spread(test.pods), test.ready), ""
			if len(moves) > 0 {
				from = fmt.Sprint(moves[0].Node, len(moves))
			}
			if from != test.from {
				t.Errorf("moved from %q, want %q", from, test.from)
			}
		})
	}
}

// TestAnySpreadComesToRestAfterAsFewMovesAsThereAreReplicas: the scheduler puts what is
// moved on the node that has the fewest.
func TestAnySpreadComesToRestAfterAsFewMovesAsThereAreReplicas(t *testing.T) {
	for nodes := 1; nodes <= 7; nodes++ {
		for seed := range 200 {
			pods := make([]MinioPod, 6)
			for i, rest := 0, seed*7919; i < len(pods); i, rest = i+1, rest/nodes+i*seed {
				pods[i] = MinioPod{Name: fmt.Sprint(i), Node: string(rune('a' + rest%nodes))}
			}
			start := fmt.Sprint(pods)
			moves := 0
			for ; ; moves++ {
				crowded := MinioMoves(pods, nodes)
				if len(crowded) == 0 {
					break
				}
				if moves > len(pods) {
					t.Fatalf("%s on %d nodes is still moved after %d moves: %v", start, nodes, moves, pods)
				}
				emptiest, least := "", len(pods)+1
				for node := range nodes {
					name, n := string(rune('a'+node)), 0
					for _, pod := range pods {
						if pod.Node == name && pod.Name != crowded[0].Name {
							n++
						}
					}
					if n < least {
						emptiest, least = name, n
					}
				}
				for i := range pods {
					if pods[i].Name == crowded[0].Name {
						pods[i].Node = emptiest
					}
				}
			}
			on := map[string]int{}
			for _, pod := range pods {
				on[pod.Node]++
			}
			for node, n := range on {
				if most := (len(pods) + nodes - 1) / nodes; n > most {
					t.Errorf("%s on %d nodes comes to rest with %d on %s", start, nodes, n, node)
				}
			}
		}
	}
}

func TestARunningReplicaMayGoOnlyIfOneMoreThanAQuorumStays(t *testing.T) {
	for replicas, want := range map[int]bool{2: false, 4: false, 5: true, 6: true, 8: true, 16: true} {
		facts := MinioFacts{Replicas: replicas, Pods: spread(fmt.Sprintf("a%d b%d", replicas/2, replicas-replicas/2))}
		if got := facts.MayLoseOne(MinioQuorum(replicas)); got != want || !facts.Complete() {
			t.Errorf("%d replicas: %t", replicas, got)
		}
		facts.Pods[0].State = MinioPodEnds
		if facts.Complete() || facts.MayLoseOne(replicas-2) {
			t.Errorf("%d replicas, of which one ends", replicas)
		}
	}
}
