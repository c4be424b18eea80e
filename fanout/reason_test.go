// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
	"github.com/atoll-dev/atoll/wal/waltest"
)

// reasonCase is an error with its Reason and its Message.
type reasonCase struct {
	name    string // of the exported error, if there is one
	err     error
	reason  fanout.Reason
	message string
}

func at(peer region.PeerName, err error) error {
	return &region.Error{Peer: peer, Op: "create Secret a/b", Err: err}
}

func diagnosed(peer region.PeerName, cause region.Cause, attempts int) error {
	return at(peer, &region.Diagnosis{Cause: cause, Remedy: cause.Remedy(), Err: errors.New("dial tcp 10.0.0.1:443"), Attempts: attempts, Since: time.Unix(int64(attempts), 0)})
}

func reasonCases() []reasonCase {
	since := time.Unix(1, 0)
	occupants := []fanout.Occupant{{Peer: "us", Resource: schema.GroupResource{Resource: "secrets"}, Key: key("acme", "db")}}
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "b", nil)
	aborted := func(err error) error {
		return fmt.Errorf("add Secret a/b: %w (operation 1): %w", fanout.ErrAborted, err)
	}
	inDoubt := func(attempts int) *fanout.InDoubtError {
		return &fanout.InDoubtError{Operation: fmt.Sprint(attempts), Peers: []region.PeerName{"us"}, Settles: "it is settled once peer us answers", Err: diagnosed("us", region.CauseRefused, attempts)}
	}
	return []reasonCase{
		{"InDoubtError", inDoubt(3), fanout.ReasonInDoubt, "the outcome is not known yet: it is settled once peer us answers: us: no answer"},
		{"HeldError", &fanout.HeldError{Kind: accounts, Key: key("", "acme"), Holder: "us", Operation: "1", Stage: "Configured", Since: since}, fanout.ReasonNameTaken, "Account acme is held by peer us (Configured): remove it first, or choose another name"},
		{"", &fanout.HeldError{Kind: accounts, Key: key("", "acme"), Holder: "us", Since: since}, fanout.ReasonNameTaken, "Account acme is held by peer us (applied there without a claim): adopt it, delete it there, or choose another name"},
		{"", &fanout.HeldError{Kind: accounts, Key: key("", "acme"), Holder: "us", Operation: "1", Stage: "Active", Lost: "eu", UID: "u"}, fanout.ReasonObjectLost, "Account acme is held by peer us (Active), for the object that was committed in eu and is missing there (UID u): bring the peer back (atollctl peer comeback eu), or release the loss (atollctl account release acme)"},
		{"ConflictError", &fanout.ConflictError{Kind: accounts, Key: key("", "acme"), Revision: 7}, fanout.ReasonConflict, "Account acme was changed by another write: read it again and repeat the operation"},
		{"OccupiedError", &fanout.OccupiedError{Kind: accounts, Key: key("", "acme"), Occupants: occupants}, fanout.ReasonOccupied, "Account acme was not removed: its namespace still holds secrets acme/db in us: remove them first"},
		{"BlockedError", &fanout.BlockedError{Change: "1", Kind: fanout.Leave, Peer: "us", Blocking: occupants}, fanout.ReasonBlocked, "Leave of peer us is refused because of secrets acme/db in us, which live there: remove them first"},
		{"GuardError", aborted(at("us", &fanout.GuardError{Kind: accounts, Fields: []string{"spec.size"}, Err: errors.New("required")})), fanout.ReasonGuardRejected, "the API server refuses the guard of a Account: required: set Kind.Guard to fill spec.size"},
		{"FinalizerError", &fanout.FinalizerError{Kind: accounts, Key: key("", "acme"), Finalizers: []string{"a/b"}, Since: since}, fanout.ReasonFinalizers, "Account acme is being deleted since 1970-01-01T00:00:01Z and waits for finalizer a/b: the controller that set it must remove it"},
		{"ForeignError", &fanout.ForeignError{Operation: "1", Coordinator: "c", Kind: accounts, Key: key("", "acme"), Since: since}, fanout.ReasonForeignOperation, "operation 1 is of coordinator c, which works on Account acme since 1970-01-01T00:00:01Z: to abort it all the same, set AbortOptions.Others: its operation ends without effect even if that coordinator is alive"},
		{"WrongPeerError", aborted(at("us", &fanout.WrongPeerError{Peer: "us", Property: fanout.PropertyName, Found: "eu", Want: "us"})), fanout.ReasonWrongPeer, "configured peers and PeerSet differ: credentials lead to another peer: the cluster behind peer us calls itself eu: correct the peer's credentials"},
		{"ReturnedError", aborted(at("us", &fanout.ReturnedError{Peer: "us", Epoch: 3, Noted: 4, By: []region.PeerName{"eu"}})), fanout.ReasonPeerRestored, "peer us was restored from an older state: bring it back (atollctl peer comeback us)"},
		{"ErrReturned", fanout.ErrReturned, fanout.ReasonPeerRestored, "the peer was restored from an older state"},
		{"ErrOtherLog", fmt.Errorf("%w: use the log of this ring", fanout.ErrOtherLog), fanout.ReasonOtherLog, "the log belongs to another ring: use the log of this ring"},
		{"ErrWrongPeer", fanout.ErrWrongPeer, fanout.ReasonWrongPeer, "configured peers and PeerSet differ: credentials lead to another peer"},
		{"ErrOtherRing", fanout.ErrOtherRing, fanout.ReasonWrongPeer, "configured peers and PeerSet differ: credentials lead to another peer of another ring"},
		{"", aborted(fmt.Errorf("%w: us and eu: configure it under one name", region.ErrSameCluster)), fanout.ReasonWrongPeer, "two peers reach one cluster: us and eu: configure it under one name"},
		{"ErrMembership", aborted(fmt.Errorf("%w: peer us has no PeerSet", fanout.ErrMembership)), fanout.ReasonMembership, "configured peers and PeerSet differ: peer us has no PeerSet"},
		{"ErrNoOwner", aborted(fmt.Errorf("%w: it must be Active: add it first: %w", fanout.ErrNoOwner, at("us", errors.New("try 7")))), fanout.ReasonNoOwner, "its namespace has no active owner: it must be Active: add it first"},
		{"ErrUnknownKind", fmt.Errorf("add: %w", fmt.Errorf("%w: Secret", fanout.ErrUnknownKind)), fanout.ReasonUnknownKind, "kind is not in Options.Kinds: Secret"},
		{"ErrUnknownOperation", fmt.Errorf("operation 1: %w", fanout.ErrUnknownOperation), fanout.ReasonUnknownOperation, "operation 1: neither the log nor any peer that answers knows it"},
		{"ErrNotHeld", fmt.Errorf("release Account acme: %w", fanout.ErrNotHeld), fanout.ReasonNotHeld, "release Account acme: no deletion of it waits for a release"},
		{"ErrNotFound", fmt.Errorf("remove Account acme: %w", fanout.ErrNotFound), fanout.ReasonNotFound, "remove Account acme: no peer holds it"},
		{"ErrCommitted", fmt.Errorf("operation 1 is %w", fanout.ErrCommitted), fanout.ReasonCommitted, "operation 1 is committed: it cannot be aborted"},
		{"ErrEnded", fmt.Errorf("add Secret a/b: %w (operation 1): %w", fanout.ErrEnded, diagnosed("us", region.CauseLost, 2)), fanout.ReasonPeerUnreachable, "ended: not in effect now, perhaps was for a while: us: no answer"},
		{"", fmt.Errorf("add Secret a/b: %w", fanout.ErrEnded), fanout.ReasonEnded, "ended: not in effect now, perhaps was for a while"},
		{"ErrAborted", fanout.ErrAborted, fanout.ReasonAborted, "aborted: nothing is in effect"},
		{"", aborted(at("us", errors.New("the name changed hands again and again: try again"))), fanout.ReasonAborted, "us: the name changed hands again and again: try again"},
		{"", aborted(errors.Join(diagnosed("us", region.CauseDNS, 5), diagnosed("eu", region.CauseTimeout, 1))), fanout.ReasonPeerUnreachable, "eu, us: no answer"},
		{"", aborted(diagnosed("us", region.CauseUnknownAuthority, 5)), fanout.ReasonPeerUnreachable, "us: certificate signed by unknown authority: correct the certificate authority in the kubeconfig"},
		{"", aborted(errors.Join(diagnosed("us", region.CauseForbidden, 5), diagnosed("ap", region.CauseRefused, 5), diagnosed("us", region.CauseTimeout, 1))), fanout.ReasonPeerRejected, "ap: no answer; us: right is missing: grant that right"},
		{"", aborted(at("us", invalid)), fanout.ReasonPeerRejected, `us: Secret "b" is invalid`},
		{"", aborted(region.ErrUnavailable), fanout.ReasonPeerUnreachable, "a peer does not answer"},
		{"", fmt.Errorf("add: %w", fmt.Errorf("%w \"mars\"", region.ErrUnknownPeer)), fanout.ReasonUnknownPeer, `unknown peer "mars"`},
		{"", region.ErrNoPeers, fanout.ReasonUnknownPeer, "no peers are known"},
		{"", aborted(fmt.Errorf("it was not committed in time: %w", context.DeadlineExceeded)), fanout.ReasonTimeout, "the time ended before the commit"},
		{"", aborted(context.Canceled), fanout.ReasonCanceled, "the caller canceled it before the commit"},
		{"", fmt.Errorf("operation 1: %w", errors.New("disk\nfull")), fanout.ReasonFailed, "disk full"},
		{"", errors.New(strings.Repeat("é", 600)), fanout.ReasonFailed, strings.Repeat("é", 510) + "..."},
		{"", nil, "", ""},
	}
}

func TestReasons(t *testing.T) {
	for _, tc := range reasonCases() {
		require.Equal(t, tc.reason, fanout.ReasonOf(tc.err), "%v", tc.err)
		require.Equal(t, tc.message, fanout.Message(tc.err), "%v", tc.err)
		if tc.err == nil {
			continue
		}
		// Around the error of a call, no text changes the Message.
		once := fmt.Errorf("first: %w", tc.err)
		for _, err := range []error{
			fmt.Errorf("attempt 7: %w", once), errors.Join(once), errors.Join(once, once), fmt.Errorf("%w: %w", errors.New("other"), once),
		} {
			require.Equal(t, tc.reason, fanout.ReasonOf(err), "%v", err)
			if tc.reason != fanout.ReasonFailed && tc.reason != fanout.ReasonAborted && tc.reason != fanout.ReasonEnded {
				require.Equal(t, fanout.Message(once), fanout.Message(err))
			}
		}
	}
}

// Of two errors the Reason with precedence counts, in either order.
func TestReasonsOfJoinedErrors(t *testing.T) {
	cases := reasonCases()
	for i, one := range cases[:len(cases)-1] {
		for _, two := range cases[i+1:] {
			ab, ba := errors.Join(one.err, two.err), errors.Join(two.err, one.err)
			require.Equal(t, fanout.ReasonOf(ab), fanout.ReasonOf(ba), "%v", ab)
			require.Equal(t, fanout.Message(ab), fanout.Message(ba), "%v", ab)
			if two.err != nil {
				require.Contains(t, []fanout.Reason{one.reason, two.reason}, fanout.ReasonOf(ab))
			}
		}
	}
}

// Each exported error of the package has a Reason of its own or is in the table above.
func TestEachErrorHasAReason(t *testing.T) {
	want := map[string]bool{}
	for _, tc := range reasonCases() {
		want[tc.name] = true
	}
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		require.NoError(t, err)
		for name, o := range parsed.Scope.Objects {
			isError := o.Kind == ast.Typ && strings.HasSuffix(name, "Error") || o.Kind == ast.Var && strings.HasPrefix(name, "Err")
			if isError && ast.IsExported(name) {
				found++
				require.True(t, want[name], "reasonCases lacks %s", name)
			}
		}
	}
	require.Equal(t, len(want)-1, found)
}

// Attempts that fail for one reason have one Message, although their errors differ.
func TestRepeatedAttempts(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fault  func(r *regiontest.Ring)
		opts   fanout.AddOptions
		limit  time.Duration
		reason fanout.Reason
		want   string
	}{
		{"two peers are away", func(r *regiontest.Ring) {
			r.Partition("ap-south", true)
			r.Partition("us-east", true)
		}, fanout.AddOptions{}, 0, fanout.ReasonPeerUnreachable, "ap-south, us-east: no answer"},
		{"two peers are awaited", func(r *regiontest.Ring) {
			r.Partition("ap-south", true)
			r.Partition("us-east", true)
		}, fanout.AddOptions{Unreachable: fanout.Wait}, 50 * time.Millisecond, fanout.ReasonPeerUnreachable, "ap-south, us-east: no answer"},
		{"two peers deny", func(r *regiontest.Ring) {
			for _, peer := range []region.PeerName{"ap-south", "us-east"} {
				r.Server(peer).Inject(regiontest.Fault{Verb: "create", Times: -1, Do: regiontest.Refuse(403)})
			}
		}, fanout.AddOptions{}, 0, fanout.ReasonPeerRejected, `right is missing: the peer must grant the rights that "atollctl rbac" prints`},
		{"the commit is in doubt", func(r *regiontest.Ring) {
			for _, verb := range []string{"get", "update", "delete"} {
				r.Server("eu-west").Inject(regiontest.Fault{Verb: verb, Resource: schema.GroupResource{Group: "kubecarrier.io", Resource: "serviceclusters"}, Times: -1, Do: regiontest.Refuse(503)})
			}
		}, fanout.AddOptions{IdempotencyKey: "k"}, 100 * time.Millisecond, fanout.ReasonInDoubt, "once peer eu-west answers: eu-west: no answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRing(t)
			c := coordinator(t, r, waltest.NewMemory(), fanout.Options{})
			acme := addAccount(t, c)
			tc.fault(r)
			tc.opts.Target = "eu-west"
			errs, messages := map[string]bool{}, map[string]bool{}
			for range 8 {
				ctx := t.Context()
				if tc.limit > 0 {
					ctx = within(t, tc.limit)
				}
				op, err := c.Add(ctx, newServiceCluster(acme, "db"), tc.opts)
				require.Equal(t, tc.reason, fanout.ReasonOf(err), "%v", err)
				message := fanout.Message(err)
				if op != nil {
					require.NotContains(t, message, op.ID)
				}
				errs[err.Error()], messages[message] = true, true
			}
			require.Greater(t, len(errs), 1)
			require.Len(t, messages, 1, "%v", messages)
			for message := range messages {
				require.Contains(t, message, tc.want)
			}
		})
	}
}
