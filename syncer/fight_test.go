// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package syncer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/atoll-dev/atoll/syncer"
)

// message returns the message of the first problem, or "" if there are no problems.
func (p *pair) message() string {
	p.t.Helper()
	for _, s := range p.Status().Types {
		for _, problem := range s.Problems {
			return problem.Message
		}
	}
	return ""
}

// If another client and the syncer keep overwriting the same field, the syncer reports this and leaves the object as it
// is.
func TestFight(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(deployments, deployment)
		p.up.create(configMaps, a)
		p.rest()
		p.down.patch(deployments, "web", `{"status":{"observedGeneration":1,"replicas":2}}`, "status")
		p.rest()
		scale := func(times int) {
			for i := range times {
				p.down.patch(deployments, "web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, 7+i%2))
				p.settle()
			}
		}
		scale(5)
		require.EqualValues(t, 2, field(p.down.get(deployments, "web"), "spec", "replicas"))
		require.Empty(t, p.problems())
		p.reset()
		scale(20)
		require.Equal(t, []string{"deployments.apps default/web Fight"}, resourceProblems(p))
		require.Contains(t, p.message(), `.spec.replicas: conflict with "somebody"`)
		require.Contains(t, p.message(), "5 times within 5m0s")
		require.Len(t, p.down.writes(), 21, "20 of the test, and one without force, which finds the owner of the field and changes nothing")
		require.EqualValues(t, 8, field(p.down.get(deployments, "web"), "spec", "replicas"))
		require.EqualValues(t, 2, field(p.up.get(deployments, "web"), "status", "replicas"), "the status of another spec does not go up")

		// Other objects are still synced.
		p.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
		p.rest()
		require.Equal(t, "w", field(p.down.get(configMaps, "a"), "data", "k"))

		// A person changes the object: it is written once more.
		time.Sleep(6 * time.Minute)
		p.up.patch(deployments, "web", `{"spec":{"replicas":3}}`)
		p.rest()
		require.EqualValues(t, 3, field(p.down.get(deployments, "web"), "spec", "replicas"))
		require.Empty(t, p.problems())
	})
}

func resourceProblems(p *pair) []string {
	var found []string
	for _, s := range p.Status().Types {
		for _, problem := range s.Problems {
			found = append(found, fmt.Sprintf("%s %s %s", s.Resource.GroupResource(), problem.Object, problem.Reason))
		}
	}
	return found
}

// Ten minutes after a fight was reported, the object is written again.
func TestFightIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Fights: syncer.FightCap{Times: 2, Within: time.Minute}})
		p.up.create(configMaps, a)
		p.rest()
		for range 3 {
			p.down.patch(configMaps, "a", `{"data":{"k":"theirs"}}`)
			p.settle()
		}
		require.Equal(t, []string{"configmaps default/a Fight"}, p.problems())
		time.Sleep(11 * time.Minute)
		require.Equal(t, "v", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())

		// Rare changes are no fight.
		for range 10 {
			p.down.patch(configMaps, "a", `{"data":{"k":"theirs"}}`)
			time.Sleep(time.Minute)
		}
		require.Equal(t, "v", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())
	})
}

// A client that keeps removing fields, or deleting the downstream object, causes no conflict of field managers. The
// syncer reports a fight all the same.
func TestFightWithoutConflict(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(p *pair)
		want string
	}{
		"removes": {func(p *pair) { p.down.patch(configMaps, "a", `{"data":{"k":null},"immutable":false}`) }, `fields that were removed by one of "somebody"`},
		"deletes": {func(p *pair) { p.down.delete(configMaps, "a") }, "it was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				p := newPair(t, syncer.Options{})
				p.up.create(configMaps, a)
				p.rest()
				for range 10 {
					if p.down.get(configMaps, "a") != nil {
						test.harm(p)
					}
					p.settle()
				}
				require.Equal(t, []string{"configmaps default/a Fight"}, p.problems())
				require.Contains(t, p.message(), test.want)
				p.reset()
				time.Sleep(5 * time.Minute)
				require.Empty(t, p.down.writes())
				p.up.delete(configMaps, "a")
				p.rest()
				require.Nil(t, p.up.get(configMaps, "a"))
				require.Nil(t, p.down.get(configMaps, "a"))
				require.Empty(t, p.problems())
			})
		})
	}
}

// A change upstream goes down even while another client keeps deleting the downstream object.
func TestFightAndChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{})
		p.up.create(configMaps, a)
		p.rest()
		for range 6 {
			p.down.delete(configMaps, "a")
			p.settle()
		}
		require.Equal(t, []string{"configmaps default/a Fight"}, p.problems())
		p.up.patch(configMaps, "a", `{"data":{"k":"w"}}`)
		p.settle()
		require.Equal(t, "w", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())
		p.down.delete(configMaps, "a")
		p.settle()
		require.Nil(t, p.down.get(configMaps, "a"), "the fight is not over")
		require.Equal(t, []string{"configmaps default/a Fight"}, p.problems())
	})
}

func TestFightWithoutEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newPair(t, syncer.Options{Fights: syncer.FightCap{Times: -1}})
		p.up.create(configMaps, a)
		p.rest()
		for range 30 {
			p.down.patch(configMaps, "a", `{"data":{"k":"theirs"}}`)
			p.settle()
		}
		require.Equal(t, "v", field(p.down.get(configMaps, "a"), "data", "k"))
		require.Empty(t, p.problems())
	})
}
