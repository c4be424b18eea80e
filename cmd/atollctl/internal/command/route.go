// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router"
)

// layers names the sources of routes in the output.
var layers = map[router.Layer]string{
	router.FromSource: "Configuration", router.FromResolver: "ServiceCluster", router.FromCache: "Cache",
}

func (s *session) route() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "route NAME.PROVIDER",
		Short: "Show which peer serves a region",
		Long: `Show which peer serves a region. The file of --config decides for the regions that it
lists. Any other region is served by the peer that has the ServiceCluster of its name
in the provider's namespace. --routes keeps the last known routes in a file, for use
while peers are unreachable.`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			return s.routed(ctx, args[0], file, func(r *router.Router, k region.Key) error {
				route, err := s.refresh(ctx, r, k)
				if err != nil {
					return err
				}
				return s.printRoute(route)
			})
		}),
	}
	routesFlag(c, &file)
	return c
}

func routesFlag(c *cobra.Command, file *string) {
	c.Flags().StringVar(file, "routes", "", "`file` that keeps the last known routes")
}

// routed calls f with a running Router. The Router asks the peers for regions that the
// configuration does not list. If file is not empty, the Router also stores the routes in the file.
func (s *session) routed(ctx context.Context, name, file string, f func(*router.Router, region.Key) error) error {
	k, err := region.ParseKey(name)
	if err != nil {
		return badInput("", "%w", err)
	}
	d, err := s.connect(ctx)
	if err != nil {
		return err
	}
	opts := router.Options{Resolver: router.ResolverFunc(s.resolve), Timeout: s.timeout}
	if file != "" {
		cache, err := router.OpenCache(file)
		if err != nil {
			return badInput("name another file, or remove this one", "--routes: %w", err)
		}
		if damaged := cache.Damaged(); damaged != "" {
			s.warn("%s was damaged and is %s now", file, damaged)
		}
		opts.Cache = cache
	}
	r, err := router.New(d, opts)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Start(running) }()
	err = f(r, k)
	stop()
	if endErr := <-ended; err == nil {
		err = endErr
	}
	return err
}

// refresh asks the peers for the route of k. If that fails, it returns the last known route, with a
// warning about the age of the route.
func (s *session) refresh(ctx context.Context, r *router.Router, k region.Key) (router.Route, error) {
	route, err := r.Refresh(ctx, k)
	if is(err, region.ErrUnknownRegion) {
		return route, badInput("add its ServiceCluster, or list it in the file of --config", "%s: %w", k, region.ErrUnknownRegion)
	}
	if err == nil {
		return route, nil
	}
	known, lookupErr := r.Lookup(ctx, k)
	if lookupErr != nil {
		return known, err
	}
	s.warn("this is %s old: %s", known.Age().Round(time.Second), oneLine(err))
	return known, nil
}

// resolve searches all peers for the region's ServiceCluster.
func (s *session) resolve(ctx context.Context, k region.Key) (region.PeerName, error) {
	results := read(ctx, s.peers.Directory, "find region", func(ctx context.Context, c *region.Conn) (bool, error) {
		return serves(ctx, c, k)
	})
	for o := range results.All() {
		if o.Err == nil && o.Value {
			return o.Peer, nil
		}
	}
	if err := s.unread(results.Err()); err != nil {
		return "", err
	}
	return "", region.ErrUnknownRegion
}

// serves reports whether the peer has the region's ServiceCluster, rather than a guard or a
// reservation.
func serves(ctx context.Context, c *region.Conn, key region.Key) (bool, error) {
	obj, err := c.Dynamic().Resource(fanout.ServiceClusters().Resource).Namespace(key.Provider).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !noSuchType(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage")
	return stage == string(fanoutv1alpha1.StageConfigured), nil
}

func (s *session) printRoute(route router.Route) error {
	server, err := s.server(route.Peer)
	if err != nil {
		return err
	}
	age := "-"
	fields := map[string]any{"peer": string(route.Peer), "server": server, "from": layers[route.From]}
	if !route.At.IsZero() {
		age = route.Age().Round(time.Second).String()
		fields["at"] = began(route.At)
	}
	return s.print(listing{
		columns: []string{"Region", "Peer", "Server", "From", "Age"},
		items: []item{{
			cells:  []any{route.Region.String(), string(route.Peer), server, layers[route.From], age},
			object: object("Route", route.Region.String(), fields),
		}},
		single: true,
	})
}

// server returns the address of a peer.
func (s *session) server(peer region.PeerName) (string, error) {
	conn, err := s.peers.Conn(peer)
	if err != nil {
		return "", err
	}
	config, err := conn.StreamConfig()
	if err != nil {
		return "", fmt.Errorf("peer %s: %w", peer, err)
	}
	return config.Host, nil
}

func (s *session) explainRoute() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "explain NAME.PROVIDER",
		Short: "Show which peer serves a region, the source of the route, and the peer's health",
		Long: `Show which peer serves a region, the answer of each source of routes and its age, and
whether the peer is reachable and still the same cluster. For operations and names use
"operation explain".`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			return s.routed(ctx, args[0], file, func(r *router.Router, k region.Key) error {
				_, err := s.refresh(ctx, r, k)
				e := r.Explain(ctx, k)
				if printed := s.printRouting(ctx, e); err == nil {
					err = printed
				}
				return err
			})
		}),
	}
	routesFlag(c, &file)
	return c
}

func (s *session) printRouting(ctx context.Context, e router.Explanation) error {
	fields := map[string]any{"why": anys(e.Why)}
	contact := ""
	if e.Err != nil {
		fields["error"] = oneLine(e.Err)
	} else {
		fields["peer"], fields["from"] = string(e.Route.Peer), layers[e.Route.From]
		if !e.Route.At.IsZero() {
			fields["at"] = began(e.Route.At)
		}
		contact = s.contact(ctx, e.Route.Peer)
		fields["contact"] = contact
	}
	if s.output != formatTable {
		return s.print(listing{items: []item{{object: object("Route", e.Region.String(), fields)}}, single: true})
	}
	fmt.Fprint(s.out, e)
	if contact != "" {
		fmt.Fprintf(s.out, "  contact: %s\n", contact)
	}
	return nil
}

// contact returns a text with the identity of a peer's cluster, or with the reason why the identity
// cannot be read.
func (s *session) contact(ctx context.Context, peer region.PeerName) string {
	conn, err := s.peers.Conn(peer)
	if err != nil {
		return oneLine(err)
	}
	uid, err := conn.UID(ctx)
	switch {
	case err == nil:
		return fmt.Sprintf("it answers, and is the cluster %s", uid)
	case apierrors.IsForbidden(err):
		return "it answers, but its identity cannot be read: " + oneLine(err)
	case errors.Is(err, region.ErrUnavailable):
		return "it does not answer: " + oneLine(err)
	default:
		return oneLine(err)
	}
}

func anys(lines []string) []any {
	all := make([]any, len(lines))
	for i, line := range lines {
		all[i] = line
	}
	return all
}
