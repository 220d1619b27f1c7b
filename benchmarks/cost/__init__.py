"""What does it cost: a message, a statement, a page, after much has happened?"""
