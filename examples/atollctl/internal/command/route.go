// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
)

func (s *session) route() *cobra.Command {
	return &cobra.Command{
		Use:   "route NAME.PROVIDER",
		Short: "Say which peer serves a region",
		Long: `Say which peer serves a region. A region that the file of --config lists is served
by the peer that it lists; of any other the peers are asked which of them has the
ServiceCluster of that name in the provider's namespace.`,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			key, err := region.ParseKey(args[0])
			if err != nil {
				return badInput("", "%w", err)
			}
			d, err := s.connect(ctx)
			if err != nil {
				return err
			}
			if peer, ok := d.Snapshot().Locate(key); ok {
				return s.printRoute(key, peer.Name, "Configuration")
			}
			return s.ask(ctx, key)
		}),
	}
}

// ask looks for the region's ServiceCluster in all peers.
func (s *session) ask(ctx context.Context, key region.Key) error {
	results := read(ctx, s.peers.Directory, "find region", func(ctx context.Context, c *region.Conn) (bool, error) {
		return serves(ctx, c, key)
	})
	for o := range results.All() {
		if o.Err == nil && o.Value {
			return s.printRoute(key, o.Peer, "ServiceCluster")
		}
	}
	if err := s.unread(results.Err()); err != nil {
		return err
	}
	return badInput("add its ServiceCluster, or list it in the file of --config", "%s: %w", key, region.ErrUnknownRegion)
}

// serves says whether the peer has the region's ServiceCluster, rather than a
// guard of its name or a reservation.
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

func (s *session) printRoute(key region.Key, peer region.PeerName, from string) error {
	conn, err := s.peers.Conn(peer)
	if err != nil {
		return err
	}
	config, err := conn.StreamConfig()
	if err != nil {
		return fmt.Errorf("peer %s: %w", peer, err)
	}
	return s.print(listing{
		columns: []string{"Region", "Peer", "Server", "From"},
		items: []item{{
			cells:  []any{key.String(), string(peer), config.Host, from},
			object: object("Route", key.String(), map[string]any{"peer": string(peer), "server": config.Host, "from": from}),
		}},
		single: true,
	})
}
