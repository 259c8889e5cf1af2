package sqlite

import "strings"

// parse finds the columns in a CREATE TABLE statement: what stands first between commas that are in no brackets.
func (t *Table) parse(sql string) {
	open := strings.IndexByte(sql, '(')
	if open < 0 {
		return
	}
	sql = uncomment(sql[open+1:])
	integers := map[string]int{} // columns of type INTEGER
	for sql != "" {
		def, rest, last := cutDefinition(sql)
		name, tail := firstName(def)
		words := strings.Fields(strings.ToUpper(tail))
		// Section 2.3: an INTEGER PRIMARY KEY is the row id, and stored as NULL.
		switch {
		case name == "":
		case isConstraint(name, def):
			if at, ok := integers[primaryKey(def)]; ok {
				t.rowid = at
			}
		default:
			if len(words) > 0 && words[0] == "INTEGER" {
				integers[strings.ToUpper(name)] = len(t.Columns)
				if strings.Contains(strings.Join(words, " "), " PRIMARY KEY") {
					t.rowid = len(t.Columns)
				}
			}
			t.Columns = append(t.Columns, name)
		}
		if last {
			return
		}
		sql = rest
	}
}

// uncomment blanks out -- and /* */ comments that are in no quotes.
func uncomment(sql string) string {
	var b strings.Builder
	for i := 0; i < len(sql); {
		switch {
		case strings.HasPrefix(sql[i:], "--"):
			n := strings.IndexByte(sql[i:], '\n')
			if n < 0 {
				return b.String()
			}
			i += n
		case strings.HasPrefix(sql[i:], "/*"):
			n := strings.Index(sql[i:], "*/")
			if n < 0 {
				return b.String()
			}
			i += n + 2
			b.WriteByte(' ')
		case strings.IndexByte("\"'`[", sql[i]) >= 0:
			n := quoted(sql[i:])
			b.WriteString(sql[i : i+n])
			i += n
		default:
			b.WriteByte(sql[i])
			i++
		}
	}
	return b.String()
}

// quoted is the length of the quoted thing that s starts with.
func quoted(s string) int {
	end := s[0]
	if end == '[' {
		end = ']'
	}
	if n := strings.IndexByte(s[1:], end); n >= 0 {
		return n + 2
	}
	return len(s)
}

// cutDefinition splits at the next comma, or ends at the bracket that closes the statement.
func cutDefinition(sql string) (def, rest string, last bool) {
	depth := 0
	for i := 0; i < len(sql); i++ {
		switch sql[i] {
		case '"', '\'', '`', '[':
			i += quoted(sql[i:]) - 1
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return sql[:i], "", true
			}
		case ',':
			if depth == 0 {
				return sql[:i], sql[i+1:], false
			}
		}
	}
	return sql, "", true
}

func firstName(def string) (name, tail string) {
	def = strings.TrimSpace(def)
	if def == "" {
		return "", ""
	}
	if strings.IndexByte("\"'`[", def[0]) >= 0 {
		n := quoted(def)
		return strings.Trim(def[:n], "\"'`[]"), def[n:]
	}
	n := strings.IndexFunc(def, func(r rune) bool { return r <= ' ' || r == '(' })
	if n < 0 {
		return def, ""
	}
	return def[:n], def[n:]
}

// isConstraint tells a table's constraint from a column.
func isConstraint(name, def string) bool {
	if strings.IndexByte("\"'`[", strings.TrimSpace(def)[0]) >= 0 {
		return false
	}
	switch strings.ToUpper(name) {
	case "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT":
		return true
	}
	return false
}

// primaryKey is the one column of a PRIMARY KEY constraint, in upper case; else empty.
func primaryKey(def string) string {
	def = strings.ToUpper(def)
	open, end := strings.IndexByte(def, '('), strings.LastIndexByte(def, ')')
	if open < 0 || end < open || !strings.Contains(strings.Join(strings.Fields(def[:open]), " "), "PRIMARY KEY") {
		return ""
	}
	return strings.Trim(def[open+1:end], " \t\n\"'`[]")
}
