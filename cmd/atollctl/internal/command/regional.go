// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/atoll-dev/atoll/fanout"
	fanoutv1alpha1 "github.com/atoll-dev/atoll/fanout/v1alpha1"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/router/aggregate"
)

const regionalTypes = `TYPE is RESOURCE.VERSION.GROUP, such as couchdbs.v1.loodse, or RESOURCE.VERSION of
the core group. A group that is a provider's stands for the groups of its regions:
couchdbs.loodse for couchdbs.eu-west-1.loodse and couchdbs.eu-east-1.loodse. The
regions are those that the file of --config lists, and those of ServiceClusters.`

// selection selects the objects of a command.
type selection struct {
	namespace, selector string
}

func (sel *selection) flags(c *cobra.Command) {
	c.Flags().StringVarP(&sel.namespace, "namespace", "n", "", "only those of this `namespace`")
	c.Flags().StringVarP(&sel.selector, "selector", "l", "", "only those with these `labels`")
}

func (s *session) get() *cobra.Command {
	var sel selection
	var watch bool
	c := &cobra.Command{
		Use:   "get TYPE [NAME]",
		Short: "Show the objects of a type in all regions",
		Long: `Show the objects of a type in all regions, or one by its name, which is
NAME@REGION if several regions have it.

` + regionalTypes + `

If a region is unreachable, the objects of the others are printed and the exit code
is 4.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: s.run(func(ctx context.Context, args []string) error {
			gvr, err := parseType(args[0])
			if err != nil {
				return err
			}
			api, err := s.aggregate(ctx)
			if err != nil {
				return err
			}
			switch {
			case watch && len(args) == 2:
				return badInput("select it with --selector", "--watch of one object is not supported")
			case watch:
				return s.watchAll(ctx, api, gvr, sel)
			case len(args) == 2:
				return s.getOne(ctx, api, gvr, sel, args[1])
			}
			return s.getAll(ctx, api, gvr, sel)
		}),
	}
	sel.flags(c)
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show each change too, as the command watch does")
	return c
}

func (s *session) watch() *cobra.Command {
	var sel selection
	c := &cobra.Command{
		Use:   "watch TYPE",
		Short: "Show the objects of a type in all regions, and each change",
		Long: `Show the objects of a type in all regions, then each change until --timeout or a
signal. The changes of an unreachable region follow once it is reachable; its objects
do not count as deleted.

` + regionalTypes,
		Args: oneArg,
		RunE: s.run(func(ctx context.Context, args []string) error {
			gvr, err := parseType(args[0])
			if err != nil {
				return err
			}
			api, err := s.aggregate(ctx)
			if err != nil {
				return err
			}
			return s.watchAll(ctx, api, gvr, sel)
		}),
	}
	sel.flags(c)
	return c
}

// parseType parses RESOURCE.VERSION.GROUP or RESOURCE.VERSION.
func parseType(text string) (schema.GroupVersionResource, error) {
	parts := strings.SplitN(text, ".", 3)
	if len(parts) < 2 || parts[0] == "" || parts[1] == "" {
		return schema.GroupVersionResource{}, badInput("write RESOURCE.VERSION.GROUP, such as couchdbs.v1.loodse", "type %q is not complete", text)
	}
	gvr := schema.GroupVersionResource{Resource: parts[0], Version: parts[1]}
	if len(parts) == 3 {
		gvr.Group = parts[2]
	}
	return gvr, nil
}

// aggregate returns an API that merges the objects of all regions.
func (s *session) aggregate(ctx context.Context) (*aggregate.API, error) {
	d, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	regions, err := s.regions(ctx, d)
	if err != nil {
		return nil, err
	}
	var members []aggregate.Member
	var providers []string
	for k, peer := range regions {
		conn, err := d.Conn(peer)
		if err != nil {
			return nil, err
		}
		members = append(members, aggregate.Member{Region: k, Cluster: string(peer), Client: conn.Dynamic()})
		providers = append(providers, k.Provider)
	}
	if len(members) == 0 {
		return nil, badInput("list regions in the file of --config, or add a ServiceCluster", "no regions are known")
	}
	set, err := aggregate.Fixed(members...)
	if err != nil {
		return nil, err
	}
	return aggregate.New(set, aggregate.Options{Timeout: readTimeout, Map: aggregate.ByProvider(providers...)})
}

// regions returns the regions of the configuration and of ServiceClusters, with the peer that
// serves each.
func (s *session) regions(ctx context.Context, d region.Directory) (map[region.Key]region.PeerName, error) {
	all := map[region.Key]region.PeerName{}
	results := read(ctx, d, "list ServiceClusters", func(ctx context.Context, c *region.Conn) ([]unstructured.Unstructured, error) {
		return list(ctx, c, fanout.ServiceClusters().Resource, "")
	})
	for o := range results.All() {
		if o.Err != nil {
			s.warn("regions that only peer %s knows are left out: %s", o.Peer, oneLine(o.Err))
			continue
		}
		for _, obj := range o.Value {
			if stage, _, _ := unstructured.NestedString(obj.Object, "spec", "fanout", "stage"); stage == string(fanoutv1alpha1.StageConfigured) {
				all[region.Key{Provider: obj.GetNamespace(), Name: obj.GetName()}] = o.Peer
			}
		}
	}
	for k, p := range d.Snapshot().Regions() {
		all[k] = p.Name // the configuration takes precedence
	}
	return all, ctx.Err()
}

func (s *session) getOne(ctx context.Context, api *aggregate.API, gvr schema.GroupVersionResource, sel selection, name string) error {
	o, err := api.Dynamic().Resource(gvr).Namespace(sel.namespace).Get(aggregate.WithPolicy(ctx, aggregate.BestEffort()), name, metav1.GetOptions{})
	switch {
	case apierrors.IsConflict(err):
		return &problem{code: exitConflict, remedy: "name the region too", err: err}
	case apierrors.IsServiceUnavailable(err):
		return &problem{code: exitDoubt, err: err}
	case err != nil:
		return err
	}
	l := listing{columns: regionalColumns, wide: regionalWide, items: []item{s.regional(o)}, single: true}
	return s.print(l)
}

func (s *session) getAll(ctx context.Context, api *aggregate.API, gvr schema.GroupVersionResource, sel selection) error {
	ctx, report := aggregate.WithReport(aggregate.WithPolicy(ctx, aggregate.BestEffort()))
	l := listing{columns: regionalColumns, wide: regionalWide}
	opts := metav1.ListOptions{Limit: pageSize, LabelSelector: sel.selector}
	for {
		page, err := api.Reader(sel.namespace, gvr).ListAll(ctx, opts)
		if err != nil {
			return err
		}
		for i := range page.Items {
			l.items = append(l.items, s.regional(&page.Items[i]))
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	if len(l.items) == 0 && s.output == formatTable {
		fmt.Fprintln(s.errOut, "no objects")
	} else if err := s.print(l); err != nil {
		return err
	}
	for _, warning := range report.Warnings() {
		s.warn("%s", warning)
	}
	if !report.Complete() {
		return s.unread(&problem{err: fmt.Errorf("%s of all regions is not complete", gvr.GroupResource())})
	}
	return nil
}

func (s *session) watchAll(ctx context.Context, api *aggregate.API, gvr schema.GroupVersionResource, sel selection) error {
	w, err := api.Reader(sel.namespace, gvr).WatchWithContext(ctx, metav1.ListOptions{LabelSelector: sel.selector})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return apierrors.FromObject(e.Object)
		}
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		it := s.regional(o)
		if s.output == formatTable {
			fmt.Fprintf(s.out, "%-8s %s\n", e.Type, strings.TrimRight(fmt.Sprintln(it.cells[:3]...), "\n"))
			continue
		}
		line, err := json.Marshal(map[string]any{"type": e.Type, "object": o.Object})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s\n", line)
	}
	return nil
}

var (
	regionalColumns = []string{"Region", "Namespace", "Name", "Age"}
	regionalWide    = []string{"UID", "Labels"}
)

func (s *session) regional(o *unstructured.Unstructured) item {
	o.SetManagedFields(nil)
	k, _ := aggregate.RegionOf(o)
	age := "-"
	if created := o.GetCreationTimestamp(); !created.IsZero() {
		age = duration.HumanDuration(s.now().Sub(created.Time).Round(time.Second))
	}
	return item{cells: []any{k.String(), or(o.GetNamespace()), o.GetName(), age, string(o.GetUID()), or(labels.FormatLabels(o.GetLabels()))}, object: o}
}
