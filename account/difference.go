// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/internal/argument"
	"github.com/atoll-dev/atoll/internal/loop"
	"github.com/atoll-dev/atoll/region"
)

// Difference is one field in which a peer's object differs from the object that Compare compares it
// with.
type Difference struct {
	Peer region.PeerName
	// Field is the path of the field, such as "spec.subjects[0].name"; empty if the peer lacks
	// the object.
	Field string
	// Got is the peer's value and Want the reference's, in JSON, of at most 256 bytes; empty if
	// the field is absent. For Secrets both are hidden.
	Got, Want string
}

// String returns one line with the peer, the field and the values.
func (d Difference) String() string {
	switch {
	case d.Field == "":
		return fmt.Sprintf("%s lacks the object", d.Peer)
	case d.Got == hidden || d.Want == hidden:
		return fmt.Sprintf("%s differs in %s", d.Peer, d.Field)
	default:
		return fmt.Sprintf("%s has %s %s instead of %s", d.Peer, d.Field, cmp.Or(d.Got, "nothing"), cmp.Or(d.Want, "nothing"))
	}
}

// Comparison is the result of Compare.
type Comparison struct {
	// Reference is the peer whose object the other peers' objects are compared with: the peer of
	// the home, or, if no home was read, the first peer by name that has the object. Empty if no
	// peer has it.
	Reference region.PeerName
	// Differences are sorted by peer and field.
	Differences []Difference
	// Unread has all peers, with Err set for those that could not be read and so were not
	// compared.
	Unread region.Results[struct{}]
}

// Compare reads an object that exists everywhere from all peers of d, and returns the fields in
// which the peers' objects differ from the reference. It writes nothing, and blocks until every
// peer has answered or ctx has ended. An unreachable peer is no error; without any peer the error
// wraps region.ErrNoPeers.
func Compare(ctx context.Context, d region.Directory, kind fanout.Kind, key types.NamespacedName) (*Comparison, error) {
	switch {
	case argument.Missing(d):
		return nil, errors.New("account: directory is nil: pass a region.Ring or region.Fixed(...)")
	case kind.Resource.Resource == "" || kind.Resource.Version == "" || kind.Kind == "":
		return nil, errors.New("account: kind is empty: pass what Kind or KindWith returns")
	case key.Name == "":
		return nil, errors.New("account: key has no name: name the object to compare")
	}
	results, err := region.Each(ctx, d, "read "+kind.Kind+" "+loop.KeyText(key), region.BestEffort(),
		func(ctx context.Context, c *region.Conn) (*unstructured.Unstructured, error) {
			obj, err := clientFor(c, kind, key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return obj, err
		})
	if err != nil {
		return nil, err
	}
	copies := map[region.PeerName]*unstructured.Unstructured{}
	var unread []region.Outcome[struct{}]
	for o := range results.All() {
		unread = append(unread, region.Outcome[struct{}]{Peer: o.Peer, Err: o.Err, Elapsed: o.Elapsed})
		if o.Err == nil {
			copies[o.Peer] = o.Value
		}
	}
	if len(unread) == 0 {
		return nil, fmt.Errorf("compare %s %s: %w", kind.Kind, loop.KeyText(key), region.ErrNoPeers)
	}
	reference, err := primaryOf(kind, copies)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Reference: reference, Unread: region.ResultsOf("compare", unread...)}
	if reference == "" {
		return c, nil
	}
	c.Differences, err = differences(kind, copies[reference], copies)
	return c, err
}

// primaryOf returns the peer whose object the other peers' objects are compared with: the peer of
// the home, or else the first peer by name that has the object. Empty if no peer has it.
func primaryOf(kind fanout.Kind, copies map[region.PeerName]*unstructured.Unstructured) (region.PeerName, error) {
	var first region.PeerName
	for _, peer := range slices.Sorted(maps.Keys(copies)) {
		obj := copies[peer]
		if obj == nil {
			continue
		}
		state, err := kind.State(obj)
		if err != nil {
			return "", &region.Error{Peer: peer, Op: "compare " + kind.Kind + " " + obj.GetName(), Err: err}
		}
		if isHome(state) {
			return peer, nil
		}
		if first == "" {
			first = peer
		}
	}
	return first, nil
}

// isHome reports whether the object with this state is the home.
func isHome(state *fanoutv1alpha1.Fanout) bool {
	switch {
	case state == nil || state.Claim == nil:
		return false
	case state.Home == nil:
		return state.Claim.Role == fanoutv1alpha1.RolePrimary
	default:
		return state.Home.Peer == state.Claim.Peer && !state.Home.Yielded
	}
}

// differences compares the object of each peer in copies with want. A nil object means that the
// peer lacks the object. It is pure.
func differences(kind fanout.Kind, want *unstructured.Unstructured, copies map[region.PeerName]*unstructured.Unstructured) ([]Difference, error) {
	wanted, err := kind.Content(want)
	if err != nil {
		return nil, err
	}
	secret := kind.Resource.Group == "" && kind.Resource.Resource == "secrets"
	var all []Difference
	for _, peer := range slices.Sorted(maps.Keys(copies)) {
		if copies[peer] == nil {
			all = append(all, Difference{Peer: peer})
			continue
		}
		got, err := kind.Content(copies[peer])
		if err != nil {
			return nil, &region.Error{Peer: peer, Op: "compare " + kind.Kind + " " + want.GetName(), Err: err}
		}
		found := walk(nil, "", any(got), any(wanted))
		for i := range found {
			found[i].Peer = peer
			if secret {
				found[i].Got, found[i].Want = hidden, hidden
			}
		}
		all = append(all, found...)
	}
	return all, nil
}

// hidden replaces the values of Secrets.
const hidden = "(hidden)"

// walk appends to found the differences between got and want, at path and below.
func walk(found []Difference, path string, got, want any) []Difference {
	if reflect.DeepEqual(got, want) {
		return found
	}
	switch want := want.(type) {
	case map[string]any:
		if _, ok := got.(map[string]any); !ok && got != nil {
			break
		}
		got, _ := got.(map[string]any)
		keys := map[string]bool{}
		for k := range want {
			keys[k] = true
		}
		for k := range got {
			keys[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			found = walk(found, join(path, k), got[k], want[k])
		}
		return found
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			break
		}
		for i := range want {
			found = walk(found, path+"["+strconv.Itoa(i)+"]", got[i], want[i])
		}
		return found
	}
	return append(found, Difference{Field: path, Got: valueText(got), Want: valueText(want)})
}

// join returns the path of the field key at path.
func join(path, key string) string {
	if strings.ContainsAny(key, "./[]") {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

func valueText(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	const most = 256
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most-3]), "") + "..."
	}
	return string(text)
}
