// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

const (
	// stagePending is shown for an object without a claim. Such an object has no effect.
	stagePending = "Pending"
	// stageUnknown is shown for an object if no peer that was read has its primary, and for a peer
	// whose state could not be read.
	stageUnknown = "Unknown"
	// stageHeld is shown for an object that was deleted in the peer of its primary, while its
	// removal from all peers is not committed.
	stageHeld = "Held"
	// peerAnnotation is the annotation with the name of an object's peer. list adds it to the
	// objects that it prints.
	peerAnnotation = "atollctl.atoll.dev/peer"
)

// copied is an object as one peer has it.
type copied struct {
	peer   region.PeerName
	obj    *unstructured.Unstructured
	fanout fanoutv1alpha1.Fanout
}

func (s *session) listObjects(kind fanout.Kind) *cobra.Command {
	var namespace string
	var all bool
	c := &cobra.Command{
		Use:   "list",
		Short: fmt.Sprintf("List the %ss of all peers", kind.Kind),
		Long: fmt.Sprintf(`List the %ss of all peers, one line for each name. With --all, list
every object in every peer: reservations, guards and replicas too. Without it a
name that is only reserved is not listed: "operation list --peers" shows it.

If a peer cannot be read, the objects of the others are printed and the exit code is 4.
STAGE is Unknown for an object whose stage only the unread peer knows.`, kind.Kind),
		Args: cobra.NoArgs,
		RunE: s.run(func(ctx context.Context, _ []string) error {
			d, err := s.connect(ctx)
			if err != nil {
				return err
			}
			results := read(ctx, d, "list "+kind.Resource.Resource, func(ctx context.Context, c *region.Conn) ([]unstructured.Unstructured, error) {
				return list(ctx, c, kind.Resource, namespace)
			})
			copies, err := sorted(results)
			if err != nil {
				return err
			}
			if len(copies) > 0 || results.Err() == nil || s.output != formatTable {
				if err := s.printObjects(kind, copies, all, unreadPeers(results)); err != nil {
					return err
				}
			}
			if err := s.unread(results.Err()); err != nil {
				return err
			}
			return s.allNamed(ctx)
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "list every object in every peer")
	if kind.Namespaced {
		c.Flags().StringVarP(&namespace, "namespace", "n", "", "only those of this `account`")
	}
	return c
}

// sorted returns the objects of all peers that were read, ordered by namespace, name and peer. It
// removes the managedFields of the objects, and adds peerAnnotation.
func sorted(results region.Results[[]unstructured.Unstructured]) ([]copied, error) {
	var copies []copied
	for o := range results.All() {
		if o.Err != nil {
			continue
		}
		for i := range o.Value {
			obj := &o.Value[i]
			c := copied{peer: o.Peer, obj: obj}
			if raw, found, _ := unstructured.NestedMap(obj.Object, "spec", "fanout"); found {
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &c.fanout); err != nil {
					return nil, fmt.Errorf("peer %s: %s %s: spec.fanout: %w", o.Peer, obj.GetKind(), obj.GetName(), err)
				}
			}
			obj.SetManagedFields(nil)
			annotations := obj.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[peerAnnotation] = string(o.Peer)
			obj.SetAnnotations(annotations)
			copies = append(copies, c)
		}
	}
	slices.SortStableFunc(copies, func(a, b copied) int {
		return cmp.Or(cmp.Compare(a.obj.GetNamespace(), b.obj.GetNamespace()), cmp.Compare(a.obj.GetName(), b.obj.GetName()), cmp.Compare(a.peer, b.peer))
	})
	return copies, nil
}

// unreadPeers returns the peers that could not be listed.
func unreadPeers(results region.Results[[]unstructured.Unstructured]) []string {
	var peers []string
	for o := range results.All() {
		if o.Err != nil {
			peers = append(peers, string(o.Peer))
		}
	}
	return peers
}

func (s *session) printObjects(kind fanout.Kind, copies []copied, all bool, unread []string) error {
	reserved := 0
	l := listing{columns: columns(kind, all), wide: []string{"Operation", "UID"}}
	if all {
		for _, c := range copies {
			l.items = append(l.items, s.row(kind, c, nil))
		}
	} else {
		for group := range byName(copies) {
			committed := deciding(group, unread)
			if len(committed) == 0 {
				reserved++
			}
			for _, c := range committed {
				l.items = append(l.items, s.row(kind, c, group))
			}
		}
	}
	if reserved > 0 {
		fmt.Fprintf(s.errOut, "%d reserved and not committed: see %q\n", reserved, s.program+" operation list --peers")
	}
	if len(l.items) == 0 && s.output == formatTable {
		fmt.Fprintf(s.errOut, "no %ss\n", kind.Kind)
		return nil
	}
	for _, c := range copies {
		if held, ok := kind.Hold(c.obj); ok {
			s.warn("%s %s was deleted in %s: %s", kind.Kind, c.obj.GetName(), c.peer, holdText(held))
		}
	}
	return s.print(l)
}

// byName yields, for each name in turn, the objects that the peers have under this name. copies
// must be ordered by name.
func byName(copies []copied) func(yield func([]copied) bool) {
	key := func(c copied) types.NamespacedName {
		return types.NamespacedName{Namespace: c.obj.GetNamespace(), Name: c.obj.GetName()}
	}
	return func(yield func([]copied) bool) {
		for len(copies) > 0 {
			n := slices.IndexFunc(copies, func(c copied) bool { return key(c) != key(copies[0]) })
			if n < 0 {
				n = len(copies)
			}
			if !yield(copies[:n]) {
				return
			}
			copies = copies[n:]
		}
	}
}

// deciding returns the objects of one name that decide its owner: the committed primary, and the
// objects without a claim. If it finds neither, because the primary's peer is in unread or because
// the primary is being moved, it returns one guard or replica. It returns nothing if all objects of
// the name are reservations of peers that were read.
func deciding(group []copied, unread []string) []copied {
	var found, standing []copied
	for _, c := range group {
		reserved := c.fanout.Stage == fanoutv1alpha1.StageReserved
		switch {
		case c.fanout.Claim == nil, c.primary() && !reserved:
			found = append(found, c)
		case !c.primary() && (!reserved || slices.Contains(unread, c.holder())):
			standing = append(standing, c)
		}
	}
	if len(found) == 0 && len(standing) > 0 {
		found = standing[:1]
	}
	return found
}

func (c copied) primary() bool {
	if home := c.fanout.Home; home != nil {
		return home.Peer == string(c.peer) && (home.UID == "" || home.UID == c.obj.GetUID())
	}
	return c.fanout.Claim != nil && c.fanout.Claim.Role == fanoutv1alpha1.RolePrimary
}

// holder returns the peer of c's primary.
func (c copied) holder() string {
	switch {
	case c.fanout.Home != nil:
		return c.fanout.Home.Peer
	case c.fanout.Claim != nil && c.fanout.Claim.Primary != nil:
		return c.fanout.Claim.Primary.Peer
	default:
		return string(c.peer)
	}
}

func columns(kind fanout.Kind, all bool) []string {
	var names []string
	if kind.Namespaced {
		names = append(names, "Namespace")
	}
	names = append(names, "Name", "Peer", "Stage")
	if all {
		names = append(names, "Role")
	}
	if kind.Mode == fanout.Once {
		names = append(names, "Target")
	} else {
		names = append(names, "Revision")
		if !all {
			names = append(names, "Current")
		}
	}
	return append(names, "Age")
}

// row returns the row of c. group holds the objects of c's name in all peers; it is nil if each
// object gets a row of its own.
func (s *session) row(kind fanout.Kind, c copied, group []copied) item {
	all := group == nil
	var cells []any
	if kind.Namespaced {
		cells = append(cells, c.obj.GetNamespace())
	}
	stage, role, target := stagePending, "-", "-"
	peer := string(c.peer)
	if claim := c.fanout.Claim; claim != nil {
		stage, target = string(c.fanout.Stage), claim.Target
		if _, held := kind.Hold(c.obj); held {
			stage = stageHeld
		}
		// The claim has the role with which the object was created. The primary may have moved
		// since then.
		if role = string(fanoutv1alpha1.RoleSecondary); c.primary() {
			role = string(fanoutv1alpha1.RolePrimary)
		} else if !all {
			stage, peer = stageUnknown, c.holder()
		}
	}
	cells = append(cells, c.obj.GetName(), peer, stage)
	if all {
		cells = append(cells, role)
	}
	if kind.Mode == fanout.Once {
		cells = append(cells, target)
	} else {
		revision := "-"
		if c.fanout.Revision != nil {
			revision = fmt.Sprint(c.fanout.Revision.Number)
		}
		cells = append(cells, revision)
		if !all {
			cells = append(cells, s.current(c, group))
		}
	}
	operation := ""
	if c.fanout.Claim != nil {
		operation = c.fanout.Claim.Operation
	}
	return item{cells: append(cells, s.age(c.obj), or(operation), string(c.obj.GetUID())), object: c.obj}
}

// current returns the number of peers in which c's content is known to be in effect, and the number
// of all peers, as "2/3".
func (s *session) current(c copied, group []copied) string {
	n := 0
	for _, other := range group {
		if other.fanout.Stage == fanoutv1alpha1.StageActive && other.fanout.Revision != nil && c.fanout.Revision != nil &&
			other.fanout.Revision.Number == c.fanout.Revision.Number {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, s.peers.Snapshot().Len())
}

func (s *session) age(obj *unstructured.Unstructured) string {
	created := obj.GetCreationTimestamp()
	if created.IsZero() {
		return "-"
	}
	return duration.HumanDuration(s.now().Sub(created.Time))
}
