"""How fast is it, and which settings would change that?"""
