// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package regiontest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/regiontest"
)

// doors are the two ways to reach a server.
var doors = map[string]func(*testing.T, *regiontest.Server) region.Credentials{
	"in process": func(t *testing.T, s *regiontest.Server) region.Credentials {
		t.Helper()
		creds, err := region.FromConfig(s.Config())
		require.NoError(t, err)
		return creds
	},
	"TLS": func(t *testing.T, s *regiontest.Server) region.Credentials {
		t.Helper()
		kubeconfig, err := s.Listen(t.Context())
		require.NoError(t, err)
		creds, err := region.ParseKubeconfig(kubeconfig, region.Trust{})
		require.NoError(t, err)
		return creds
	},
}

// The server is partitioned or closed at a certain moment of a create, so the client gets an error.
// If the server executed the create, region.Attempt reports that the client may have sent it.
func TestNoCutHidesAnEffect(t *testing.T) {
	for door, open := range doors {
		for name, tc := range map[string]struct {
			before  bool // the partition begins before the request
			handled bool // the partition begins while the server processes the request
			do      func(s *regiontest.Server) regiontest.Action
			applied bool
		}{
			"before it arrives":        {before: true},
			"before it is carried out": {do: func(s *regiontest.Server) regiontest.Action { return regiontest.Crash(cut(s)) }},
			"before it is answered":    {handled: true, applied: true},
			"after it is carried out":  {do: func(s *regiontest.Server) regiontest.Action { return regiontest.CrashAfter(cut(s)) }, applied: true},
			"by Close":                 {do: func(s *regiontest.Server) regiontest.Action { return regiontest.CrashAfter(s.Close) }, applied: true},
		} {
			t.Run(door+"/"+name, func(t *testing.T) {
				t.Parallel()
				var s *regiontest.Server
				s = regiontest.NewServer(regiontest.Options{
					CRDs: []*apiextensionsv1.CustomResourceDefinition{widgetCRD()},
					Authorize: func(r regiontest.Request) error {
						if tc.handled && r.Verb == "create" {
							s.Partition(true)
						}
						return nil
					},
				})
				t.Cleanup(s.Close)
				conn, err := region.NewConn(region.Peer{Name: "eu", Credentials: open(t, s)}, region.ConnOptions{})
				require.NoError(t, err)
				w := conn.Dynamic().Resource(widgets).Namespace("default")
				_, err = w.List(t.Context(), metav1.ListOptions{}) // over TLS the connection exists from here on
				require.NoError(t, err)
				if tc.do != nil {
					s.Inject(regiontest.Fault{Verb: "create", Do: tc.do(s)})
				}
				s.Partition(tc.before)
				var attempt region.Attempt
				_, err = w.Create(region.WithAttempt(t.Context(), &attempt), widget("a", 1), metav1.CreateOptions{})
				require.Error(t, err)
				requests := s.Requests()
				last := requests[len(requests)-1]
				require.Error(t, last.Err)
				require.Zero(t, last.Code)
				objects, err := s.Objects(widgets.GroupResource())
				require.NoError(t, err)
				require.Equal(t, tc.applied, len(objects) == 1)
				// Over TLS the connection exists already, so the client may have sent even a request
				// that the server did not accept.
				require.Equal(t, !tc.before || door == "TLS", attempt.Sent())
			})
		}
	}
}

func cut(s *regiontest.Server) func() { return func() { s.Partition(true) } }
