package catalog

import "slices"

func (b *Batch) createDatabase(c CreateDatabase) (Result, *Error) {
	if err := checkDatabaseName(c.Name); err != nil {
		return Result{}, err
	}
	if b.s.databases.has(c.Name) {
		if c.IfNotExists {
			return Result{}, nil
		}
		return Result{}, refuse(ErrDatabaseAlreadyExist, "database %s already exists", c.Name)
	}
	if err := checkText("comment", c.Comment, maxComment); err != nil {
		return Result{}, err
	}
	props, err := sortedProperties("properties", c.Properties)
	if err != nil {
		return Result{}, err
	}
	now := b.s.cluster.Wall
	b.putDatabase(nil, &Database{
		Name: c.Name, Comment: c.Comment, Properties: props, Created: now, Wall: now, CreatedAt: b.rev, Revision: b.rev,
	})
	return Result{Changed: true}, nil
}

func (b *Batch) alterDatabase(c AlterDatabase) (Result, *Error) {
	d, ok := b.s.databases.get(c.Name)
	if !ok {
		if c.IfExists {
			return Result{}, nil
		}
		return Result{}, refuse(ErrDatabaseNotExist, "database %s does not exist", c.Name)
	}
	if c.ExpectedRevision.Set && c.ExpectedRevision.V != d.Revision {
		return Result{}, conflict(uint64(d.Revision), "database %s is at revision %d, expected %d", c.Name, d.Revision, c.ExpectedRevision.V)
	}
	props, err := alterProperties(d.Properties, c.Set, c.Reset)
	if err != nil {
		return Result{}, err
	}
	comment := c.Comment.Or(d.Comment)
	if err := checkText("comment", comment, maxComment); err != nil {
		return Result{}, err
	}
	if comment == d.Comment && slices.Equal(props, d.Properties) {
		return Result{}, nil
	}
	n := *d
	n.Comment, n.Properties, n.Wall, n.Revision = comment, props, b.s.cluster.Wall, b.rev
	b.putDatabase(d, &n)
	return Result{Changed: true}, nil
}

func (b *Batch) dropDatabase(c DropDatabase) (Result, *Error) {
	d, ok := b.s.databases.get(c.Name)
	if !ok {
		if c.IfExists {
			return Result{}, nil
		}
		return Result{}, refuse(ErrDatabaseNotExist, "database %s does not exist", c.Name)
	}
	var tables []*Table
	b.s.Tables(c.Name, func(t *Table) bool {
		tables = append(tables, t)
		return true
	})
	if len(tables) > 0 && !c.Cascade {
		return Result{}, refuse(ErrDatabaseNotEmpty, "database %s has %d tables", c.Name, len(tables))
	}
	budget := dropBudget{maxInlineDrop, maxInlineReplicas}
	for _, t := range tables {
		b.removeTable(t, &budget)
	}
	b.deleteDatabase(d)
	return Result{Changed: true}, nil
}
