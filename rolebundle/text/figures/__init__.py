"""The figures of a text: numbers with units, dates, times, versions, addresses, identifiers."""
